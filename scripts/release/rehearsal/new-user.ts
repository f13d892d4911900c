import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../checks/command.ts';
import { hostPath } from '../../launcher/environment.mjs';
import { root } from '../../launcher/root.mjs';
import type { Registry } from './registry.ts';

/** From the first page of the site to a lock that works. */
const MOST_SECONDS = 300;

/** What `nest new` gives an application, as ES modules. */
const COMPILER = {
  target: 'es2023',
  module: 'nodenext',
  types: ['node'],
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  outDir: 'dist',
};
const NESTJS = [
  '@nestjs/common@11',
  '@nestjs/core@11',
  '@nestjs/platform-express@11',
  'reflect-metadata',
  'rxjs',
  'typescript@5',
  '@types/node@24',
];

/**
 * Does what a new user does: follows the link of the first page to the page of NestJS, and in an empty folder runs its command and
 * its example, as they stand there, with NestJS 11 and a Redis server. Gives what was seen.
 */
export async function newUserPath(registry: Registry, folder: string): Promise<string> {
  const start = performance.now();
  const seconds = (): number => (performance.now() - start) / 1_000;
  const { command, example } = readPages();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '.npmrc'), `@locks:registry=${registry.url}\n`);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: COMPILER, files: ['main.ts'] }),
  );
  const env = { ...process.env, npm_config_minimum_release_age: '0', PATH: hostPath() };
  const run = (program: string, ...args: string[]) => must(program, args, { cwd: folder, env });
  await run('npm', 'install', '--no-audit', '--no-fund', ...NESTJS);
  await run('npm', ...command, '--no-audit', '--no-fund');
  const installed = seconds();
  const { freePort, startRedis, waitUntil } = await import('../../../test-servers/src/index.ts');
  const port = await freePort();
  const listen = `app.listen(${port}, '127.0.0.1')`;
  writeFileSync(join(folder, 'main.ts'), example.replace('app.listen(3_000)', listen));
  await run('npx', 'tsc', '-p', '.');
  await using redis = await startRedis();
  const application = spawn(process.execPath, ['dist/main.js'], {
    cwd: folder,
    env: { ...process.env, REDIS_URL: redis.url },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(application, 'exit');
  try {
    const isSold = async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/sell/1`, { method: 'POST' });
      return (await answer.text()) === 'sold: 1';
    };
    await waitUntil(isSold, { what: 'an answer of the application', timeoutMs: 30_000, everyMs: 100 });
    const tokens = await redis.command('KEYS', 'locks:token:*');
    if (!Array.isArray(tokens) || tokens.length === 0)
      throw new Error('the lock of the example was never taken');
    const took = seconds();
    if (took > MOST_SECONDS) throw new Error(`it took ${took.toFixed(0)} s, more than ${MOST_SECONDS} s`);
    return `NestJS 11 sold an article under a lock after ${took.toFixed(0)} s, ${installed.toFixed(0)} s of them installation`;
  } finally {
    application.kill('SIGTERM');
    await ended;
  }
}

/** The command and the example of the page to which the first one leads. */
function readPages(): { command: readonly string[]; example: string } {
  if (!readFileSync(join(root, 'README.md'), 'utf8').includes('](docs/nestjs.md)'))
    throw new Error('the first page has no link to docs/nestjs.md');
  const page = readFileSync(join(root, 'docs/nestjs.md'), 'utf8');
  const example = /^## Example\n+```ts\n(.*?)^```/ms.exec(page)?.[1];
  const command = /`npm (i @locks\/core [^`]+)`/.exec(page)?.[1];
  if (example === undefined || command === undefined || !example.includes('app.listen(3_000)'))
    throw new Error('docs/nestjs.md has no example, or no command that installs');
  return { command: command.split(' '), example };
}
