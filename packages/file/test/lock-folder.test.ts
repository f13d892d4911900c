import { execFile } from 'node:child_process';
import fs, {
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { networkFinding } from '../src/network-finding.ts';
import { nameOfKey } from '../src/record-files.ts';
import {
  bootFolder,
  call,
  clockOf,
  open,
  openWithClock,
  ownClock,
  pointerOf,
  recordFolder,
  request,
  take,
  temporaryFolder,
} from './fixture.ts';

const run = promisify(execFile);
const entry = new URL('../src/index.ts', import.meta.url).href;
const isRoot = process.getuid?.() === 0;

async function failureOf(folder: string): Promise<{ code: string; message: string; retryable: boolean }> {
  const { backend } = open(folder);
  try {
    await backend.attempt(request('a'), false, call);
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    expect(message).toContain(folder);
    return { code, message, retryable: backend.isRetryable(error) };
  }
  throw new Error('the attempt did not fail');
}

/** Runs an attempt as a user who is not root, since root may write everything. */
async function attemptAsNobody(folder: string, options = '{}'): Promise<string> {
  const program = `
    if (process.getuid() === 0) { process.setgroups([]); process.setgid(65534); process.setuid(65534); }
    const { fileBackend } = await import(${JSON.stringify(entry)});
    const backend = fileBackend(process.argv[1], ${options});
    const call = { now: () => performance.now(), deadline: Infinity };
    const request = { resource: 'a', acquisitionId: '1', mode: { kind: 'exclusive' }, ttlMs: 60000 };
    const result = await backend.attempt(request, false, call).catch((error) => error);
    console.log(result.code, result.message ?? result.status);`;
  return (await run(process.execPath, ['--input-type=module', '-e', program, folder])).stdout;
}

test('a missing folder is made, with those above it', async () => {
  const { backend } = open(join(temporaryFolder(), 'a', 'b', 'locks'));
  expect((await take(backend, request('a'))).fencingToken).toBeGreaterThan(0n);
});

test('a file at the path', async () => {
  const path = join(temporaryFolder(), 'letter.txt');
  writeFileSync(path, 'Dear reader');
  expect(await failureOf(path)).toMatchObject({ code: 'NOT_A_FOLDER', retryable: false });
});

test('a file on the way to the folder', async () => {
  const path = join(temporaryFolder(), 'letter.txt');
  writeFileSync(path, 'Dear reader');
  expect(await failureOf(join(path, 'locks'))).toMatchObject({ code: 'NOT_A_FOLDER', retryable: false });
});

test('a symbolic link to the folder leads to the same locks', async () => {
  const { backend, folder } = open();
  await take(backend, request('a'));
  const link = join(temporaryFolder(), 'link');
  symlinkSync(folder, link);
  expect(await open(link).backend.attempt(request('a'), false, call)).toMatchObject({ status: 'contended' });
});

test('a folder on a network', async () => {
  const { statfsSync } = fs;
  onTestFinished(() => {
    fs.statfsSync = statfsSync;
    syncBuiltinESMExports();
  });
  fs.statfsSync = (() => ({ type: 0x6969 })) as unknown as typeof statfsSync;
  syncBuiltinESMExports();
  const folder = join(temporaryFolder(), 'locks');
  expect(await failureOf(folder)).toMatchObject({ code: 'NETWORK', retryable: false });
  expect(readdirSync(folder)).toEqual([]);
  expect(networkFinding('/mnt', 0x6969)).toMatchObject({ id: 'file/network-file-system', severity: 'error' });
  // ext4.
  expect(networkFinding('/mnt', 0xef53)).toBeUndefined();
});

test('a file system whose names are too short', async () => {
  const { openSync } = fs;
  onTestFinished(() => {
    fs.openSync = openSync;
    syncBuiltinESMExports();
  });
  fs.openSync = ((path: string, ...rest: [flags: string]) => {
    if (basename(path).length <= 135) return openSync(path, ...rest);
    throw Object.assign(new Error('ENAMETOOLONG'), { code: 'ENAMETOOLONG' });
  }) as typeof openSync;
  syncBuiltinESMExports();
  const folder = join(temporaryFolder(), 'locks');
  expect(await failureOf(folder)).toMatchObject({ code: 'NAMES_TOO_SHORT', retryable: false });
  expect(readdirSync(folder)).toEqual([]);
});

test.runIf(isRoot)('the folder of another user is refused, and with `shared` used by both', async () => {
  const above = temporaryFolder();
  chmodSync(above, 0o755);
  const own = open(join(above, 'own'));
  await take(own.backend, request('b'));
  expect(await attemptAsNobody(own.folder)).toMatch(/^FOREIGN_OWNER folder of locks/);
  // Everything below is closed to others as the umask says.
  expect(await attemptAsNobody(own.folder, '{ shared: true }')).toMatch(/^READ_ONLY folder of locks/);

  const both = open(join(above, 'both'), { shared: true });
  await take(both.backend, request('b'));
  const grant = await take(both.backend, request('a', 60_000));
  expect(await attemptAsNobody(both.folder, '{ shared: true }')).toMatch(/contended/);
  expect(await both.backend.release(grant, call)).toBe('released');
  expect(await attemptAsNobody(both.folder, '{ shared: true }')).toMatch(/granted/);
  expect(await both.backend.attempt(request('a'), false, call)).toMatchObject({ status: 'contended' });
});

test.runIf(isRoot)('a folder that may only be read', async () => {
  const above = temporaryFolder();
  chmodSync(above, 0o555);
  expect(await attemptAsNobody(join(above, 'locks'))).toMatch(/^READ_ONLY folder of locks/);
});

test('a disk that is full fails what does not fit, and works again when there is space', async () => {
  const { backend, folder } = open();
  await take(backend, request('before'));
  // A size limit for files is a disk that is full for this process: writes beyond it fail.
  const program = `
    process.on('SIGXFSZ', () => undefined);
    const { fileBackend } = await import(${JSON.stringify(entry)});
    const backend = fileBackend(process.argv[1]);
    const call = { now: () => performance.now(), deadline: Infinity };
    for (let n = 0; n < 3000; n += 1) {
      const request = { resource: 'x'.repeat(400), acquisitionId: String(n), mode: { kind: 'shared' }, ttlMs: 60000 };
      const result = await backend.attempt(request, false, call).catch((error) => error);
      if (result.code === undefined) continue;
      console.log(result.code, result.message);
      break;
    }`;
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const node = [process.execPath, '--input-type=module', '-e', program, folder].map(quote).join(' ');
  const { stdout } = await run('bash', ['-c', `ulimit -f 64; exec ${node}`]);
  expect(stdout).toMatch(/^FULL folder of locks/);
  const grant = await take(backend, request('a'));
  expect(await backend.release(grant, call)).toBe('released');
  // What was granted before the disk was full is whole.
  const { holders } = await backend.inspect('x'.repeat(400), call);
  expect(holders.length).toBeGreaterThan(10);
});

test.for([
  ['newer', '2', 'NEWER_SCHEMA'],
  ['older', '0', 'OLDER_SCHEMA'],
] as const)('a %s layout of this boot is refused', async ([, layout, code]) => {
  const folder = join(temporaryFolder(), 'locks');
  mkdirSync(join(folder, `${layout}.${ownClock().boot}`), { recursive: true });
  expect(await failureOf(folder)).toMatchObject({ code, retryable: false });
});

test('a folder that another machine writes is refused, and the one that was there goes on', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const here = openWithClock(folder, clockOf('here', 9e9));
  await take(here, request('a'));
  const there = openWithClock(folder, clockOf('there', 1e6));
  await expect(there.attempt(request('b'), false, call)).rejects.toMatchObject({ code: 'TWO_MACHINES' });
  expect(readdirSync(folder)).toEqual(['1.here']);
});

test('another machine that begins to write is noticed, whatever its wall clock says', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const values = join(folder, '1.there', 'v');
  mkdirSync(join(folder, '1.there', 'k'), { recursive: true });
  mkdirSync(values);
  const changeAt = (seconds: number): void => {
    for (const path of [join(folder, '1.there', 'k'), values]) utimesSync(path, seconds, seconds);
  };
  const now = Date.now() / 1_000;
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const here = openWithClock(folder, clockOf('here', 9e9));
  changeAt(now + 3_600);
  await take(here, request('a'));
  changeAt(now + 3_601);
  vi.advanceTimersByTime(11_000);
  // The refusal stays, also while the other one is silent.
  for (const name of ['b', 'c'])
    await expect(here.attempt(request(name), false, call)).rejects.toMatchObject({ code: 'TWO_MACHINES' });
});

test('what an earlier boot left is deleted a day later, and its holds have ended', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const before = openWithClock(folder, clockOf('first', 9e9));
  await take(before, request('a', 3_600_000));
  await before.close();
  const paths = ['k', 'v'].flatMap((name) => {
    const path = join(folder, '1.first', name);
    return [path, ...readdirSync(path).map((each) => join(path, each))];
  });
  const old = Date.now() / 1_000 - 400 * 86_400;
  for (const path of paths) utimesSync(path, old, old);
  await take(openWithClock(folder, clockOf('second', 1e6)), request('a'));
  expect(readdirSync(folder)).toEqual(['1.second']);
});

test('where boots cannot be told apart, a lease from a clock further on does not outlive it', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const before = openWithClock(folder, clockOf('any', 9e9, false));
  await take(before, request('a', 60_000));
  await before.close();
  await take(openWithClock(folder, clockOf('any', 1e6, false)), request('a'));
});

test('where boots cannot be told apart, a live lease stays', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const clock = clockOf('any', 9e9, false);
  await take(openWithClock(folder, clock), request('a', 60_000));
  const attempt = await openWithClock(folder, clock).attempt(request('a'), false, call);
  expect(attempt).toMatchObject({ status: 'contended' });
});

test('where boots cannot be told apart, a step of the wall clock sets no token back in a process that goes on', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const clock = clockOf('any', 9e9, false);
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const before = openWithClock(folder, clock);
  await take(before, request('a'));
  const wall = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * 86_400_000);
  onTestFinished(() => wall.mockRestore());
  const later = openWithClock(folder, clock);
  const { fencingToken: token = 0n } = await take(later, request('b'));
  wall.mockRestore();
  // As a record that nobody used for a day.
  rmSync(join(folder, '1.any', 'k', nameOfKey('lock/b')), { recursive: true });
  vi.advanceTimersByTime(11_000);
  expect((await take(before, request('b'))).fencingToken).toBeGreaterThan(token);
});

test('a step of the wall clock grants nothing twice and never sets the token back', async () => {
  const { backend: holder, folder } = open();
  const grant = await take(holder, request('a', 60_000));
  const { backend } = open(folder);
  for (const wall of [Date.now() + 3_600_000, 0, Date.now() - 3_600_000]) {
    vi.spyOn(Date, 'now').mockReturnValue(wall);
    onTestFinished(() => void vi.restoreAllMocks());
    expect((await backend.attempt(request('a'), false, call)).status).toBe('contended');
    const other = await take(backend, request('b'));
    expect(other.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
    await backend.release(other, call);
  }
});

test.for(['deleted', 'moved away'])(
  'a folder that is %s while in use is made again, and its holders are told',
  async (how) => {
    const { backend, folder } = open();
    const grant = await take(backend, request('a'));
    if (how === 'deleted') rmSync(folder, { recursive: true });
    else renameSync(folder, join(dirname(folder), 'elsewhere'));
    await expect
      .poll(() => backend.renew([{ grant, ttlMs: 60_000 }], call).catch(() => 'LOCK_BACKEND'), {
        timeout: 5_000,
        interval: 100,
      })
      .toEqual([{ status: 'lost', reason: 'force-released' }]);
    const next = await take(open(folder).backend, request('a'));
    expect(next.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
    expect((await backend.attempt(request('a'), false, call)).status).toBe('contended');
  },
);

test('a copy of the folder that is put in its place revives no write of a process that goes on', async () => {
  const { backend, folder } = open();
  const grant = await take(backend, request('a', 60_000));
  const { cpSync } = await import('node:fs');
  const copy = join(dirname(folder), 'copy');
  cpSync(folder, copy, { recursive: true });
  rmSync(folder, { recursive: true });
  renameSync(copy, folder);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  // The hold is in the copy too, and its holder goes on with it.
  expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([{ status: 'held' }]);
  expect(await open(folder).backend.attempt(request('a'), false, call)).toMatchObject({
    status: 'contended',
  });
});

test('a name that is too long for one file, and names that differ by their case only', async () => {
  const { backend, folder } = open();
  for (const name of ['x'.repeat(512), `${'x'.repeat(511)}y`, 'sku', 'SKU', 'con', '.', '..', 'a/b', '🔒']) {
    await take(backend, request(name));
    expect(pointerOf(folder, name)).toMatch(/^\w+\.\w+\./);
    expect(recordFolder(folder, name).startsWith(join(bootFolder(folder), 'k'))).toBe(true);
  }
});
