import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'locks cli alone '));
const installed = join(folder, 'node_modules/@locks/cli');

beforeAll(() => {
  for (const part of ['dist', 'package.json'])
    cpSync(join(PACKAGE, part), join(installed, part), { recursive: true });
  for (const name of ['core', 'once']) {
    const link = join(folder, 'node_modules/@locks', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(PACKAGE, '..', name), link);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ['redis://127.0.0.1:1', '@locks/redis-ioredis ioredis'],
  ['postgres://127.0.0.1:1/db', '@locks/postgres pg'],
  ['mysql://127.0.0.1:1/db', '@locks/mysql mysql2'],
  ['etcd://127.0.0.1:1', '@locks/etcd etcd3'],
  ['zookeeper://127.0.0.1:1', '@locks/zookeeper node-zookeeper-client'],
  ['sqlite:locks.db', '@locks/sqlite'],
  ['dynamodb://eu-central-1/locks', '@locks/dynamodb @aws-sdk/client-dynamodb'],
  ['s3://my-locks', '@locks/s3 @aws-sdk/client-s3'],
  ['nats://127.0.0.1:1/locks', '@locks/nats @nats-io/transport-node'],
  ['mongodb://127.0.0.1:1/app', '@locks/mongodb mongodb'],
  ['kubernetes://', '@locks/kubernetes @kubernetes/client-node'],
])('%s without its packages says what to install, and exits with 64', async (url, packages) => {
  expect(await run('ls', '--url', url)).toEqual({
    code: 64,
    stderr: expect.stringMatching(`: npm install ${packages}\n$`),
  });
});

it('prove without its package says what to install, and exits with 64', async () => {
  const outcome = await run('prove', '--url', 'sqlite:locks.db');
  expect(outcome).toEqual({ code: 64, stderr: expect.stringMatching(': npm install @locks/prove\n$') });
});

function run(...args: readonly string[]): Promise<unknown> {
  return new Promise((resolve) => {
    const all = [join(installed, 'dist/main.js'), ...args];
    execFile(process.execPath, all, { cwd: folder }, (error, _, stderr) =>
      resolve({ code: error?.code, stderr }),
    );
  });
}
