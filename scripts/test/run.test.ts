import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../launcher/root.mjs';
import { waitUntil } from '../../test-servers/src/wait-until.ts';
import { hostNode, launch, pressCtrlC } from './launched.ts';

const entry = join(root, 'scripts/run.mjs');

describe('scripts/run.mjs', () => {
  it('passes the exit code of a command on', async () => {
    const { ended } = launch(hostNode, [entry, 'exec', 'node', '-e', 'process.exitCode = 7']);
    expect(await ended).toMatchObject({ exitCode: 7 });
  });

  it('gives stdout to the command alone, which runs on the Node of the workspace', async () => {
    const { ended } = launch(hostNode, [entry, 'exec', 'node', '-p', 'process.versions.node']);
    const { stdout } = await ended;
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(Number(stdout.split('.')[0])).toBeGreaterThanOrEqual(24);
  });

  it('keeps arguments with spaces and the folder of the caller', async () => {
    const { child, ended } = launch(hostNode, [entry, 'exec', 'node', '-p', 'process.argv[1]', 'two words']);
    expect(child.pid).toBeDefined();
    expect(await ended).toMatchObject({ exitCode: 0, stdout: 'two words\n' });
  });

  it.each([['no-such-command'], ['constructor'], []])(
    'says what there is when it is asked for %j',
    async (...args) => {
      const { ended } = launch(hostNode, [entry, ...args]);
      const { exitCode, stdout, stderr } = await ended;
      expect(exitCode).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toContain('usage: node scripts/run.mjs');
    },
  );

  it('says which command was not found', async () => {
    const { ended } = launch(hostNode, [entry, 'exec', 'no-such-program']);
    expect(await ended).toMatchObject({
      exitCode: 127,
      stderr: '"no-such-program" was not found on the PATH\n',
    });
  });

  it('refuses to pack a package that does not exist, and names those that do', async () => {
    const { ended } = launch(hostNode, [entry, 'pack', 'redis', 'once', '--to', '/nowhere']);
    const { exitCode, stderr } = await ended;
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^there is no package redis; take some of .*once.*redis-ioredis/);
  });

  it('refuses a step that does not exist', async () => {
    const { ended } = launch(hostNode, [entry, 'test', 'no-such-step']);
    expect(await ended).toMatchObject({ exitCode: 2 });
  });

  it('counts the steps of a run, and says what ran and what did not when Ctrl-C stops it', async () => {
    const { child, ended } = launch(hostNode, [entry, 'test', 'words', 'unit:core']);
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await waitUntil(() => /now .*unit:core/.test(said), { what: 'the start of the tests' });
    pressCtrlC(child);
    const { exitCode, stdout } = await ended;
    expect(exitCode).toBe(130);
    expect(stdout).toMatch(/^3 steps, about \d+ (s|min)$/m);
    expect(stdout).toMatch(/^ +1\/3 ok +build /m);
    expect(stdout).toMatch(/^stopped by SIGINT$[^]*^stopped: .*unit:core/m);
    expect(stdout).toMatch(/^\d+ passed, 0 failed$/m);
  });

  it('says what to install, and which variable to set, when there is no server', async () => {
    const nowhere = mkdtempSync(join(tmpdir(), 'nowhere-'));
    const { ended } = launch(hostNode, [entry, 'demo', '--backend', 'redis-node'], {
      LOCKS_SERVER_PATH: nowhere,
      REDIS_URL: '',
    });
    const { exitCode, stderr } = await ended;
    expect(exitCode).toBe(1);
    expect(stderr).toContain('redis-server');
    expect(stderr).toContain('REDIS_URL');
  });
});
