import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createLocks } from '@locks/core';
import { fileBackend } from '@locks/file';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it, type TestContext } from 'vitest';
import { fromCache } from '../src/one-machine/build-cache.ts';

const run = promisify(execFile);
const PROCESS = new URL('one-machine-process.ts', import.meta.url);

/** A folder with the log of the processes that run a recipe in it. */
class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), 'locks-one-machine-'));
  readonly #processes: ChildProcess[] = [];

  /** @param onTestFinished - that of the test, since several run at a time */
  constructor(onTestFinished: TestContext['onTestFinished']) {
    onTestFinished(async () => {
      for (const each of this.#processes) await kill(each);
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get log(): string[] {
    try {
      return readFileSync(join(this.folder, 'log'), 'utf8').split('\n').slice(0, -1);
    } catch {
      return [];
    }
  }

  start(recipe: string): ChildProcess {
    const process = fork(PROCESS, [recipe, this.folder]);
    this.#processes.push(process);
    return process;
  }

  /** Runs a recipe until its process ends. Returns its exit code. */
  async run(recipe: string): Promise<number> {
    return ended(this.start(recipe));
  }

  /** Waits for a line of the log. */
  logs(line: string): Promise<unknown> {
    return waitUntil(() => this.log.includes(line), { what: `"${line}" in ${this.log}`, timeoutMs: 30_000 });
  }
}

async function ended(process: ChildProcess): Promise<number> {
  if (process.exitCode === null && process.signalCode === null) await once(process, 'exit');
  return process.exitCode ?? Number.NaN;
}

async function kill(process: ChildProcess): Promise<void> {
  process.kill('SIGKILL');
  await ended(process);
}

describe.concurrent('on one machine', () => {
  it('ten processes of one user refresh a token once, and nobody else may read it', async ({
    onTestFinished,
  }) => {
    const machine = new Machine(onTestFinished);
    // They are there already, as those of other programs, and open to everybody.
    const tokensIn = join(machine.folder, 'locks', 'tokens');
    mkdirSync(tokensIn, { recursive: true });
    for (const each of [dirname(tokensIn), tokensIn]) chmodSync(each, 0o755);
    const codes = await Promise.all(Array.from({ length: 10 }, () => machine.run('token')));
    expect(codes).toEqual(Array.from({ length: 10 }, () => 0));
    expect(machine.log.filter((line) => line === 'refresh')).toHaveLength(1);
    const tokens = machine.log.filter((line) => line.startsWith('has token'));
    expect(tokens).toHaveLength(10);
    expect(new Set(tokens).size).toBe(1);
    expect(statSync(tokensIn).mode & 0o777).toBe(0o700);
    expect(readdirSync(dirname(tokensIn))).toEqual(['tokens']);
  });

  it('of two terminals one builds, the other one takes it; what a killed build left is built anew', async ({
    onTestFinished,
  }) => {
    const machine = new Machine(onTestFinished);
    const killed = machine.start('cache');
    await machine.logs(`begin ${killed.pid}`);
    await kill(killed);
    const [one, other] = [machine.start('cache'), machine.start('cache')];
    const builder = await waitUntil(
      () => [one, other].find(({ pid }) => machine.log.includes(`begin ${pid}`)),
      { what: 'a build after the killed one', timeoutMs: 30_000 },
    );
    builder.send('finish');
    expect(await Promise.all([ended(one), ended(other)])).toEqual([0, 0]);
    const cache = join(machine.folder, 'cache');
    const entry = join(cache, '%40babel%2Fcore%407');
    expect(machine.log).toEqual([
      `begin ${killed.pid}`,
      `begin ${builder.pid}`,
      `has ${entry}`,
      `has ${entry}`,
    ]);
    for (const name of ['first', 'second'])
      expect(readFileSync(join(entry, name), 'utf8')).toBe(String(builder.pid));
    expect(readdirSync(join(cache, '.unfinished', '%40babel%2Fcore%407'))).toEqual([]);
  });

  it('a build goes on beside one that writes where it cannot be removed, and removes nothing of a later one', async ({
    onTestFinished,
  }) => {
    const { folder } = new Machine(onTestFinished);
    await using locks = createLocks(fileBackend(join(folder, 'locks')));
    const cache = join(folder, 'cache');
    const [stalled, later, strange] = ['7', String(2 ** 53), '.DS_Store'].map((name) =>
      join(cache, '.unfinished', 'a%2Fb', name),
    ) as [string, string, string];
    for (const each of [stalled, later, strange]) mkdirSync(each, { recursive: true });
    const { rm } = fs;
    const restore = (): void => {
      fs.rm = rm;
      syncBuiltinESMExports();
    };
    onTestFinished(restore);
    fs.rm = async (path, options) => {
      await rm(path, options);
      if (path !== `${stalled}-`) return;
      mkdirSync(path);
      throw Object.assign(new Error('ENOTEMPTY'), { code: 'ENOTEMPTY' });
    };
    syncBuiltinESMExports();
    const build = async (into: string): Promise<void> => writeFileSync(join(into, 'built'), 'whole');
    expect(await fromCache(locks, cache, 'a/b', build)).toBe(join(cache, 'a%2Fb'));
    expect(readFileSync(join(cache, 'a%2Fb', 'built'), 'utf8')).toBe('whole');
    expect(readdirSync(dirname(later)).sort()).toEqual(['.DS_Store', '7-', String(2 ** 53)]);
    // The entry of a key is not within that of another one.
    expect(await fromCache(locks, cache, 'a', build)).toBe(join(cache, 'a'));
  });

  it('a second dev server says who runs the first, and runs when that one has ended', async ({
    onTestFinished,
  }) => {
    const machine = new Machine(onTestFinished);
    const first = machine.start('server');
    await machine.logs(`serves ${first.pid}`);
    expect(await machine.run('server')).toBe(0);
    expect(machine.log.at(-1)).toBe(`runs already: http://localhost:5173 (pid ${first.pid})`);
    first.send('end');
    await ended(first);
    const next = machine.start('server');
    await machine.logs(`serves ${next.pid}`);
  });

  it('a second instance of an app leaves the profile alone, and may have it once the first one has quit', async ({
    onTestFinished,
  }) => {
    const machine = new Machine(onTestFinished);
    const first = machine.start('electron');
    await machine.logs(`owns ${first.pid}`);
    expect(await machine.run('electron')).toBe(1);
    expect(machine.log.at(-1)).toBe(`The profile is in use: the app, pid ${first.pid}.`);
    first.send('quit');
    expect(await ended(first)).toBe(0);
    const next = machine.start('electron');
    await machine.logs(`owns ${next.pid}`);
    // It is frozen for longer than its lease, as by a sleep of the machine, and ends by itself when it goes on.
    next.kill('SIGSTOP');
    await sleep(10_500);
    const other = machine.start('electron');
    await machine.logs(`owns ${other.pid}`);
    next.kill('SIGCONT');
    expect(await ended(next)).toBe(70);
  });

  it('two commits at once, in two work trees of one repository, run its hook one after the other', async ({
    onTestFinished,
  }) => {
    const machine = new Machine(onTestFinished);
    const repository = join(machine.folder, 'repository');
    const environment: NodeJS.ProcessEnv = {
      ...process.env,
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      XDG_STATE_HOME: join(machine.folder, 'state'),
    };
    for (const name of Object.keys(environment))
      if (/^(GIT_|npm_|LOCKS_URL)/.test(name)) delete environment[name];
    const git = (cwd: string, ...args: string[]) =>
      run('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd, env: environment });
    await run('git', ['init', '--quiet', repository]);
    const test = `echo begin >> ${machine.folder}/log; sleep 1; echo end >> ${machine.folder}/log`;
    writeFileSync(join(repository, 'package.json'), JSON.stringify({ scripts: { test } }));
    // The hook finds the command as in a project that has installed it.
    symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(repository, 'node_modules'));
    writeFileSync(join(repository, '.gitignore'), 'node_modules\n');
    await git(repository, 'add', '.');
    await git(repository, 'commit', '--quiet', '-m', 'first');
    const hook = join(repository, '.git', 'hooks', 'pre-commit');
    copyFileSync(new URL('../src/one-machine/pre-commit', import.meta.url), hook);
    chmodSync(hook, 0o755);
    const other = join(machine.folder, 'other');
    await git(repository, 'worktree', 'add', '--quiet', other);
    symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(other, 'node_modules'));
    await Promise.all(
      [repository, other].map((cwd) => git(cwd, 'commit', '--quiet', '--allow-empty', '-m', 'second')),
    );
    expect(machine.log).toEqual(['begin', 'end', 'begin', 'end']);
    for (const cwd of [repository, other])
      expect((await git(cwd, 'log', '--format=%s')).stdout).toBe('second\nfirst\n');
  });
});
