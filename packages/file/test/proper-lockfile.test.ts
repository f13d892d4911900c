import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import old from 'proper-lockfile';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { check, checkSync, lock, lockSync, unlock, unlockSync } from '../src/proper-lockfile.ts';
import { temporaryFolder, until } from './fixture.ts';
import type { Answer, Order } from './lockfile-main.ts';

function freshFile(): string {
  const file = join(temporaryFolder(), 'settings.json');
  writeFileSync(file, '{}');
  return file;
}

/** Another process, ended with the test. */
class Other {
  readonly child: ChildProcess;
  readonly answers: Answer[] = [];

  constructor(uid?: number) {
    const main = new URL('./lockfile-main.ts', import.meta.url);
    this.child = fork(main, { ...(uid !== undefined && { uid, gid: uid }) });
    this.child.on('message', (answer: Answer) => this.answers.push(answer));
    onTestFinished(() => {
      this.child.kill('SIGKILL');
    });
  }

  async ask(order: Order | 'release'): Promise<Answer> {
    const before = this.answers.length;
    this.child.send(order);
    return until(() => this.answers[before]);
  }

  async end(signal: NodeJS.Signals): Promise<unknown> {
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    return (await ended)[1];
  }
}

const wasLeft = (file: string, byMs = 60_000): void => {
  mkdirSync(`${file}.lock`);
  const at = (Date.now() - byMs) / 1_000;
  utimesSync(`${file}.lock`, at, at);
};
const leftBeside = (file: string): string[] =>
  readdirSync(dirname(file)).filter((name) => name !== 'settings.json');

describe('one process', () => {
  it('holds, refuses a second lock, releases once, and leaves nothing', async () => {
    const file = freshFile();
    expect(await check(file)).toBe(false);
    const release = await lock(file);
    expect(await check(file)).toBe(true);
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED', file });
    await release();
    expect(await check(file)).toBe(false);
    await expect(release()).rejects.toMatchObject({ code: 'ERELEASED' });
    await expect(unlock(file)).rejects.toMatchObject({ code: 'ENOTACQUIRED' });
    expect(leftBeside(file)).toEqual([]);
  });

  it('does the same without promises', () => {
    const file = freshFile();
    const release = lockSync(file);
    expect(checkSync(file)).toBe(true);
    expect(() => lockSync(file)).toThrow(expect.objectContaining({ code: 'ELOCKED' }));
    expect(() => lockSync(file, { retries: 1 })).toThrow(expect.objectContaining({ code: 'ESYNC' }));
    release();
    expect(release).toThrow(expect.objectContaining({ code: 'ERELEASED' }));
    lockSync(file);
    unlockSync(file);
    expect(() => unlockSync(file)).toThrow(expect.objectContaining({ code: 'ENOTACQUIRED' }));
    expect(checkSync(file)).toBe(false);
  });

  it('tries again as often as retries say', async () => {
    const file = freshFile();
    const release = await lock(file);
    const began = performance.now();
    const options = { retries: { retries: 3, minTimeout: 20, factor: 2, maxTimeout: 50 } };
    await expect(lock(file, options)).rejects.toMatchObject({ code: 'ELOCKED' });
    // 20 + 40 + 50
    expect(performance.now() - began).toBeGreaterThan(105);
    setTimeout(() => void release(), 50);
    await (await lock(file, { retries: { forever: true, minTimeout: 10, factor: 1 } }))();
  });

  it('follows symbolic links unless realpath is false', async () => {
    const file = freshFile();
    const link = join(dirname(file), 'link');
    symlinkSync(file, link);
    const release = await lock(link);
    expect(existsSync(`${file}.lock`)).toBe(true);
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' });
    await unlock(file);
    await expect(release()).rejects.toMatchObject({ code: 'ERELEASED' });
    await expect(lock(join(dirname(file), 'missing'))).rejects.toMatchObject({ code: 'ENOENT' });
    const missing = join(dirname(file), 'missing');
    await lock(missing, { realpath: false });
    expect(existsSync(`${missing}.lock`)).toBe(true);
    await unlock(missing, { realpath: false });
  });

  it('takes another directory by lockfilePath', async () => {
    const file = freshFile();
    const lockfilePath = join(dirname(file), 'dir.lock');
    const release = await lock(file, { lockfilePath });
    expect(existsSync(lockfilePath)).toBe(true);
    expect([await check(file), await check(file, { lockfilePath })]).toEqual([false, true]);
    await release();
    await lock(file, { lockfilePath });
    await unlock(file, { lockfilePath });
    expect(existsSync(lockfilePath)).toBe(false);
  });

  it('takes a stale lock over, and no other one', async () => {
    const file = freshFile();
    wasLeft(file, 9_000);
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' });
    // Less than two seconds is too little.
    rmSync(`${file}.lock`, { recursive: true });
    wasLeft(file, 1_500);
    await expect(lock(file, { stale: 1 })).rejects.toMatchObject({ code: 'ELOCKED' });
    expect(await check(file, { stale: 1 })).toBe(true);
    rmSync(`${file}.lock`, { recursive: true });
    wasLeft(file, 11_000);
    expect(await check(file)).toBe(false);
    await (await lock(file))();
    wasLeft(file, 11_000);
    lockSync(file)();
    expect(leftBeside(file)).toEqual([]);
  });

  it('tells of a lock that was removed or taken over: to onCompromised, or to who releases', async () => {
    for (const taken of [false, true]) {
      const file = freshFile();
      const onCompromised = vi.fn<(error: Error) => void>();
      const release = await lock(file, { stale: 2_000, update: 1, onCompromised });
      rmSync(`${file}.lock`, { recursive: true });
      if (taken) mkdirSync(`${file}.lock`);
      await until(() => onCompromised.mock.calls.length > 0);
      expect(onCompromised.mock.calls).toEqual([[expect.objectContaining({ code: 'ECOMPROMISED' })]]);
      await expect(release()).rejects.toMatchObject({ code: 'ERELEASED' });
      expect(existsSync(`${file}.lock`)).toBe(taken);
    }
    const file = freshFile();
    const release = await lock(file);
    rmSync(`${file}.lock`, { recursive: true });
    mkdirSync(`${file}.lock`);
    await expect(release()).rejects.toMatchObject({ code: 'ECOMPROMISED' });
    expect(existsSync(`${file}.lock`)).toBe(true);
  });

  it.each([
    ['removes its new directory', 0, false],
    ['leaves the directory to who may have taken it over', 11_000, true],
  ])('%s when the first write fails %i ms later', async (_, ms, isLeft) => {
    const file = freshFile();
    const { utimesSync: original } = fs;
    onTestFinished(() => {
      vi.restoreAllMocks();
      fs.utimesSync = original;
      syncBuiltinESMExports();
    });
    fs.utimesSync = () => {
      const now = performance.now();
      vi.spyOn(performance, 'now').mockReturnValue(now + ms);
      throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
    };
    syncBuiltinESMExports();
    await expect(lock(file)).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(existsSync(`${file}.lock`)).toBe(isLeft);
  });

  it('leaves nothing where the machine does not tell its clock', async () => {
    const file = freshFile();
    const { readFileSync } = fs;
    const restore = (): void => {
      fs.readFileSync = readFileSync;
      syncBuiltinESMExports();
    };
    onTestFinished(restore);
    fs.readFileSync = ((path: string, ...rest: ['utf8']) => {
      if (path.endsWith('/boot_id')) throw new Error('no such file');
      return readFileSync(path, ...rest);
    }) as typeof readFileSync;
    syncBuiltinESMExports();
    vi.resetModules();
    const anew = await import('../src/proper-lockfile.ts');
    await expect(anew.lock(file)).rejects.toThrow('boot_id');
    expect(leftBeside(file)).toEqual([]);
    restore();
    await (await anew.lock(file))();
  });

  it.each([
    [{ fs: {} }],
    [{ stale: '1' }],
    [{ retry: 1 }],
    [{ retries: { tries: 1 } }],
    [{ onCompromised: 1 }],
  ])('refuses %j', async (options) => {
    const wrong = options as object;
    await expect(lock(freshFile(), wrong)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  });
});

describe('beside proper-lockfile', () => {
  it('each respects a lock of the other one, and releases only its own', async () => {
    const file = freshFile();
    const release = await lock(file);
    await expect(old.lock(file)).rejects.toMatchObject({ code: 'ELOCKED' });
    expect(await old.check(file)).toBe(true);
    await release();
    const oldRelease = await old.lock(file);
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' });
    expect([await check(file), checkSync(file)]).toEqual([true, true]);
    await expect(unlock(file)).rejects.toMatchObject({ code: 'ENOTACQUIRED' });
    await oldRelease();
    await (await lock(file))();
  });

  it('a lock is kept up for longer than both take for stale', async () => {
    const [file, other] = [freshFile(), new Other()];
    expect(await other.ask({ by: 'own', file })).toEqual({ is: 'held' });
    const end = performance.now() + 5_000;
    while (performance.now() < end) {
      expect([await old.check(file, { stale: 2_000 }), await check(file, { stale: 2_000 })]).toEqual([
        true,
        true,
      ]);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(await other.ask('release')).toEqual({ is: 'released' });
  });

  it('old and new processes are never in one section together', async () => {
    const file = freshFile();
    const kinds = ['own', 'old', 'own', 'old', 'own', 'own'] as const;
    const answers = await Promise.all(kinds.map((by) => new Other().ask({ by, file, workMs: 6_000 })));
    for (const answer of answers) expect(answer).toMatchObject({ is: 'worked', overlaps: 0 });
    const sections = (by: string): number =>
      answers.reduce(
        (sum, answer, n) => sum + (kinds[n] === by && answer.is === 'worked' ? answer.sections : 0),
        0,
      );
    expect(sections('own')).toBeGreaterThan(10);
    expect(sections('old')).toBeGreaterThan(10);
    expect(leftBeside(file)).toEqual([]);
  });

  it.each(['own', 'old'] as const)(
    'a stopped holder is told when one of kind %s has taken its lock',
    async (by) => {
      const [file, holder, next] = [freshFile(), new Other(), new Other()];
      expect(await holder.ask({ by: 'own', file })).toEqual({ is: 'held' });
      holder.child.kill('SIGSTOP');
      await until(async () => (await next.ask({ by, file })).is === 'held');
      holder.child.kill('SIGCONT');
      await until(() => holder.answers.some(({ is }) => is === 'compromised'));
      expect(await holder.ask('release')).toEqual({ is: 'failed', code: 'ERELEASED' });
      expect(await check(file)).toBe(true);
    },
  );

  it('a stopped holder whose lock nobody took goes on', async () => {
    const [file, holder] = [freshFile(), new Other()];
    await holder.ask({ by: 'own', file });
    holder.child.kill('SIGSTOP');
    await until(async () => !(await check(file, { stale: 2_000 })));
    holder.child.kill('SIGCONT');
    await until(() => check(file, { stale: 2_000 }));
    expect(await holder.ask('release')).toEqual({ is: 'released' });
  });
});

describe('several processes', () => {
  it('of many that take one stale lock over together, one holds it', async () => {
    const others = Array.from({ length: 5 }, () => new Other());
    let count = 0;
    for (let round = 0; round < 20; round += 1) {
      const file = freshFile();
      wasLeft(file);
      const answers = await Promise.all(others.map((each) => each.ask({ by: 'own', file, stale: 20_000 })));
      const held = answers.filter(({ is }) => is === 'held');
      expect(held.length, JSON.stringify(answers)).toBeLessThanOrEqual(1);
      for (const [n, answer] of answers.entries()) if (answer.is === 'held') await others[n]?.ask('release');
      count += held.length;
    }
    // In the other rounds all gave way: what they leave is stale later.
    expect(count).toBeGreaterThan(0);
  });

  it('a killed holder keeps nobody waiting', async () => {
    const [file, holder] = [freshFile(), new Other()];
    await holder.ask({ by: 'own', file, stale: 60_000 });
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' });
    await holder.end('SIGKILL');
    expect(await check(file)).toBe(false);
    await (await lock(file))();
    expect(leftBeside(file)).toEqual([]);
  });

  it('a holder that ends by itself leaves nothing, and one that a signal ends keeps nobody waiting', async () => {
    const [file, holder, stopped] = [freshFile(), new Other(), new Other()];
    await holder.ask({ by: 'own', file });
    const ended = once(holder.child, 'exit');
    holder.child.send('exit');
    await ended;
    expect(leftBeside(file)).toEqual([]);
    await stopped.ask({ by: 'own', file });
    // Also beside the listeners of proper-lockfile in that process.
    expect(await stopped.end('SIGTERM')).toBe('SIGTERM');
    await (await lock(file))();
    expect(leftBeside(file)).toEqual([]);
  });

  it('a sleep of the machine, or a step of its clock, makes no living holder stale', async () => {
    const [file, holder] = [freshFile(), new Other()];
    await holder.ask({ by: 'own', file, stale: 20_000 });
    const now = Date.now();
    const clock = vi.spyOn(Date, 'now').mockReturnValue(now + 3_600_000);
    onTestFinished(() => clock.mockRestore());
    expect(await old.check(file)).toBe(false);
    expect(await check(file)).toBe(true);
    await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' });
  });

  it.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'the stale lock of another user is taken over',
    async () => {
      const file = freshFile();
      chmodSync(dirname(file), 0o777);
      wasLeft(file);
      writeFileSync(`${file}.lock.owner`, 'of another user');
      const other = new Other(65_534);
      // A takeover that a busy machine makes too slow gives up, and leaves the directory fresh.
      await expect.poll(() => other.ask({ by: 'own', file }), { timeout: 30_000 }).toEqual({ is: 'held' });
      expect(await other.ask('release')).toEqual({ is: 'released' });
      expect(leftBeside(file)).toEqual([]);
    },
    60_000,
  );
});
