import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '@locks/core/doctor';
import { machineFolderUrl, userFolderUrl } from '../src/own-folder.ts';
import { lockFolder, readStoreUrl } from '../src/store-url.ts';
import { BASE } from './once-slot.ts';
import { folder, isAlive, locksHere, MAIN, type Outcome, pidIn, Program, textIn } from './program.ts';

/** A user of his own, who has set no `LOCKS_URL`. */
class User {
  readonly state = folder();

  start(args: readonly string[], url?: string): Program {
    return new Program(args, url, '', { XDG_STATE_HOME: this.state });
  }

  locks(...args: string[]): Promise<Outcome> {
    return this.start(args).outcome;
  }
}

describe.concurrent('without a URL', () => {
  it('commands of one user take turns, first come, first served, and leave the result of the command', async () => {
    const [user, dir] = [new User(), folder()];
    const first = user.start(['run', 'deploy', '--', 'sh', '-c', blocking(dir)]);
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    const others: Promise<Outcome>[] = [];
    for (const number of [1, 2, 3]) {
      others.push(
        user.locks('run', 'deploy', '--', 'sh', '-c', `echo ${number} >> ${dir}/order; exit ${number}`),
      );
      // The lines of `show` are the holder, and those who wait in their order.
      await waitUntil(async () => (await waiting(user)) === number, { what: `${number} to wait` });
    }
    const busy = await user.locks('run', 'deploy', '--no-wait', '--', 'true');
    expect(busy).toMatchObject({ code: 75, stderr: expect.stringContaining('deploy') });
    expect((await user.locks('ls')).stdout).toMatch(/\ndeploy +exclusive /);
    expect((await new User().locks('ls')).stdout).toBe('nothing is held or waited for\n');
    writeFileSync(join(dir, 'end'), '');
    expect((await first.outcome).code).toBe(0);
    expect((await Promise.all(others)).map(({ code }) => code)).toEqual([1, 2, 3]);
    expect(textIn(join(dir, 'order'))).toBe('1\n2\n3\n');
    expect(readdirSync(user.state)).toEqual(['locks']);
  });

  it('the next command runs only when that of a killed `locks` has ended, and its ttl', async () => {
    const [user, dir] = [new User(), folder()];
    const program = user.start(['run', 'deploy', '--ttl', '3s', '--', 'sh', '-c', blocking(dir)]);
    const child = await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    program.child.kill('SIGKILL');
    expect(
      await user.locks('run', 'deploy', '--', 'sh', '-c', `kill -0 ${child} 2>&- && exit 9; exit 0`),
    ).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(isAlive(child)).toBe(false);
    await program.outcome;
  });

  it('once, watch, show, release and doctor find the same locks', async () => {
    const [user, dir] = [new User(), folder()];
    expect(await user.locks('doctor')).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^file: /),
      stderr: '',
    });
    const once = ['once', 'invoices', ...BASE, '--', 'sh', '-c', `echo ran >> ${dir}/runs`];
    for (const outcome of [await user.locks(...once), await user.locks(...once)])
      expect(outcome).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(textIn(join(dir, 'runs'))).toBe('ran\n');

    const watch = user.start(['watch', '--every', '50ms', '--json']);
    let seen = '';
    watch.child.stdout?.on('data', (chunk) => (seen += String(chunk)));
    const held = user.start(['run', 'held', '--label', 'me', '--', 'sh', '-c', blocking(dir)]);
    await waitUntil(() => seen.includes('"label":"me"'), { what: 'the hold to be seen' });
    watch.child.kill('SIGINT');
    await watch.outcome;
    expect((await user.locks('show', 'held')).stdout).toContain('me');
    expect((await user.locks('release', 'held', '--everyone', '--yes')).code).toBe(0);
    expect((await held.outcome).code).toBe(70);
  });

  it('an empty LOCKS_URL is refused: it may be that of a server', async () => {
    const outcome = await new User().start(['run', 'x', '--', 'true'], '').outcome;
    expect(outcome).toMatchObject({ code: 64, stderr: expect.stringContaining('is empty') });
  });
});

describe('the folder of a user', () => {
  it.each([
    ['linux', { XDG_STATE_HOME: '/state' }, '/state/locks'],
    ['darwin', { XDG_STATE_HOME: '/state' }, '/state/locks'],
    ['linux', {}, '$HOME/.local/state/locks'],
    ['linux', { XDG_STATE_HOME: 'relative' }, '$HOME/.local/state/locks'],
    ['darwin', {}, '$HOME/Library/Application%20Support/locks'],
    ['win32', { LOCALAPPDATA: '/local' }, '/local/locks'],
    ['win32', {}, '$HOME/AppData/Local/locks'],
  ] as const)('on %s with %j is %s', (platform, variables, path) => {
    const home = pathToFileURL(process.env['HOME'] as string).pathname;
    expect(userFolderUrl(variables, platform)).toBe(`file://${path.replace('$HOME', home)}`);
  });
});

describe('a folder by its URL', () => {
  it.each([
    ['file:///srv/my%20locks', { folder: '/srv/my locks', shared: false }],
    ['file:/srv/locks?shared=true', { folder: '/srv/locks', shared: true }],
    ['file://localhost/srv/locks?shared=false', { folder: '/srv/locks', shared: false }],
    ['file:locks', { folder: 'locks', shared: false }],
    ['file:../a%3Fb', { folder: '../a?b', shared: false }],
  ])('%s is %j', (url, expected) => {
    expect(lockFolder(readStoreUrl(url))).toEqual(expected);
  });

  it.each(['file:', 'file:x?shared=yes', 'file:x?prefix=y', 'file://elsewhere/x', 'file:///a%2Fb'])(
    '%s is refused',
    async (url) => {
      expect((await locksHere(url, 'ls')).code).toBe(64);
    },
  );

  it('has no prefix, and contradicts --machine', async () => {
    const url = pathToFileURL(folder()).href;
    expect((await locksHere(url, 'ls', '--prefix', 'x')).code).toBe(64);
    expect((await locksHere(url, 'ls', '--url', url, '--machine')).code).toBe(64);
  });

  it('file/no-folder, file/read-only: what the doctor says', async () => {
    const dir = folder();
    writeFileSync(join(dir, 'file'), '');
    const found = async (path: string): Promise<string[]> => {
      const { stdout } = await locksHere(pathToFileURL(path).href, 'doctor', '--json');
      return (JSON.parse(stdout) as Diagnosis).findings.map(({ id }) => id);
    };
    expect(await found(join(dir, 'file'))).toEqual(['file/no-folder']);
    expect(await found(join(dir, 'missing'))).toEqual([]);
    expect(readdirSync(dir)).toEqual(['file']);
  });
});

/** Mounts need such a user. */
describe.runIf(process.platform === 'linux' && process.getuid?.() === 0)('--machine', () => {
  /** In a namespace of its own `/var/lib` is empty. */
  const machine = (script: string): Outcome => {
    const mounted = `mount -t tmpfs -o mode=755 none /var/lib || exit 99
      locks() { "$NODE" "$MAIN" "$@"; }
      other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$NODE" "$MAIN" "$@"; }
      ${script}`;
    const env = { ...process.env, NODE: process.execPath, MAIN, LOCKS_URL: 'redis://127.0.0.1:1' };
    const { status, stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', mounted], {
      env,
      encoding: 'utf8',
    });
    return { code: status ?? Number.NaN, stdout, stderr };
  };

  it('all users share its locks once an administrator has made the folder', () => {
    const outcome = machine(`other run deploy --machine -- true; echo $?
      locks prepare --machine
      other run deploy --machine -- true; echo $?
      locks run deploy --machine -- sh -c '. /dev/stdin' <<'END'
        setpriv --reuid 65534 --regid 65534 --clear-groups "$NODE" "$MAIN" run deploy --machine --no-wait -- true 2>&-
        echo $?
END
      other once job --machine --slot day --at-most 1m -- true; echo $?
      locks once job --machine --slot day --at-most 1m --skip-code 7 -- true; echo $?`);
    expect(outcome).toMatchObject({ stdout: '64\nprepared\n0\n75\n0\n7\n' });
    expect(outcome.stderr).toMatch(
      /^locks: --machine: there is no \/var\/lib\/locks.*`locks prepare --machine` once\n$/,
    );
  });

  it('a group alone shares them where the folder was made for it', () => {
    const outcome = machine(`install -d -m 2770 -g 65534 /var/lib/locks
      other run deploy --machine -- true; echo $?
      setpriv --reuid 65533 --regid 65533 --clear-groups "$NODE" "$MAIN" run x --machine --no-wait -- true; echo $?`);
    expect(outcome).toMatchObject({ stdout: '0\n69\n' });
    expect(outcome.stderr).toContain('cannot be written');
  });
});

it('the folder of a machine is below %PROGRAMDATA% on Windows', () => {
  const data = folder();
  const url = `${pathToFileURL(join(data, 'locks')).href}?shared=true`;
  expect(machineFolderUrl({ PROGRAMDATA: data }, 'win32')).toBe(url);
});

function blocking(dir: string): string {
  return `echo $$ > ${dir}/child; while ! test -e ${dir}/end; do sleep 0.02; done`;
}

async function waiting(user: User): Promise<number> {
  const { stdout } = await user.locks('show', 'deploy', '--json');
  return (JSON.parse(stdout) as { waiters: unknown[] }).waiters.length;
}
