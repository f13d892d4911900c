import { execFile } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadSqlite } from '../src/load-sqlite.ts';
import { openLockFile } from '../src/lock-file.ts';
import { machineClock } from '../src/machine-clock.ts';
import { checkOptions } from '../src/options.ts';
import { call, open, request, take, temporaryFolder } from './fixture.ts';

const run = promisify(execFile);
const entry = new URL('../src/index.ts', import.meta.url).href;

async function failureOf(path: string): Promise<{ code: string; message: string; retryable: boolean }> {
  const { backend } = open(path);
  try {
    await backend.attempt(request('a'), false, call);
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    expect(message).toContain(path);
    return { code, message, retryable: backend.isRetryable(error) };
  }
  throw new Error('the attempt did not fail');
}

test('a missing folder', async () => {
  const folder = temporaryFolder();
  const failure = await failureOf(join(folder, 'none', 'locks.db'));
  expect(failure).toMatchObject({ code: 'CANNOT_OPEN', retryable: false });
  expect(failure.message).toContain(join(folder, 'none'));
});

test('a folder at the path', async () => {
  expect(await failureOf(temporaryFolder())).toMatchObject({ code: 'CANNOT_OPEN', retryable: false });
});

test('a file with a second name is refused under both: SQLite would keep a log for each', async () => {
  const { backend, path } = open();
  await take(backend, request('a'));
  await backend.close();
  const other = join(temporaryFolder(), 'other.db');
  linkSync(path, other);
  for (const name of [path, other]) {
    const failure = await failureOf(name);
    expect(failure).toMatchObject({ code: 'CANNOT_OPEN', retryable: false });
    expect(failure.message).toContain('2 names (hard links)');
  }
});

test('a symbolic link to the file leads to the same locks', async () => {
  const { backend, path } = open();
  await take(backend, request('a'));
  const link = join(temporaryFolder(), 'link.db');
  symlinkSync(path, link);
  const { backend: other } = open(link);
  expect(await other.attempt(request('a'), false, call)).toMatchObject({ status: 'contended' });
});

test('a file that is no database is refused and not touched', async () => {
  const path = join(temporaryFolder(), 'letter.txt');
  writeFileSync(path, 'Dear reader, '.repeat(1000));
  const before = statSync(path);
  expect(await failureOf(path)).toMatchObject({ code: 'FOREIGN_FILE', retryable: false });
  expect(readFileSync(path, 'utf8')).toBe('Dear reader, '.repeat(1000));
  expect(statSync(path).mtimeMs).toBe(before.mtimeMs);
});

test('a file that another process makes while this one identifies it can be used', async () => {
  const { backend, path } = open();
  const { prepare } = DatabaseSync.prototype;
  let made = false;
  const spied = vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (
    this: DatabaseSync,
    text: string,
  ) {
    // Between the first check and the last.
    if (text.includes('sqlite_schema') && !made) {
      made = true;
      const options = checkOptions(path, {});
      try {
        openLockFile(loadSqlite(), options, machineClock()).close();
      } catch {
        // As it should be: the check keeps the other process out, and it would try again.
      }
    }
    return prepare.call(this, text);
  });
  onTestFinished(() => spied.mockRestore());
  await take(backend, request('a'));
  expect(made).toBe(true);
});

test.for(['delete', 'wal'])(
  "another application's database (journal %s) is refused and not touched",
  async (mode) => {
    const path = join(temporaryFolder(), 'shop.db');
    const shop = new DatabaseSync(path);
    shop.exec(
      `PRAGMA journal_mode = ${mode}; CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1)`,
    );
    const before = readFileSync(path);
    expect(await failureOf(path)).toMatchObject({ code: 'FOREIGN_FILE', retryable: false });
    shop.close();
    const after = new DatabaseSync(path);
    expect(after.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'orders' }]);
    after.close();
    if (mode === 'delete') expect(readFileSync(path).equals(before)).toBe(true);
  },
);

test.for([
  ['newer', 2, 'NEWER_SCHEMA'],
  ['older', 0, 'OLDER_SCHEMA'],
] as const)('a %s schema is refused and not touched', async ([, version, code]) => {
  const { backend, path } = open();
  await take(backend, request('a'));
  await backend.close();
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA user_version = ${version}`);
  db.close();
  const before = readFileSync(path);
  expect(await failureOf(path)).toMatchObject({ code, retryable: false });
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('a damaged file', async () => {
  const { backend, path } = open();
  await take(backend, request('a'));
  await backend.close();
  truncateSync(path, 4096 + 100);
  expect(await failureOf(path)).toMatchObject({ code: 'CORRUPT', retryable: false });
});

/** Runs an attempt as a user who is not root, since root may write everything. */
async function attemptAsNobody(path: string): Promise<string> {
  const program = `
    if (process.getuid() === 0) { process.setgroups([]); process.setgid(65534); process.setuid(65534); }
    const { sqliteBackend } = await import(${JSON.stringify(entry)});
    const backend = sqliteBackend(process.argv[1]);
    const call = { now: () => performance.now(), deadline: Infinity };
    const request = { resource: 'a', acquisitionId: '1', mode: { kind: 'exclusive' }, ttlMs: 60000 };
    const result = await backend.attempt(request, false, call).catch((error) => error);
    console.log(result.code, result.message ?? result.status);`;
  return (await run(process.execPath, ['--input-type=module', '-e', program, path])).stdout;
}

test('a file that may only be read', async () => {
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  const path = join(folder, 'locks.db');
  const { backend } = open(path);
  await take(backend, request('a'));
  await backend.close();
  chmodSync(path, 0o444);
  expect(await attemptAsNobody(path)).toMatch(/^READ_ONLY lock file/);
});

test.for(['with', 'without'])('a folder that may only be read, %s the file in it', async (which) => {
  const folder = join(temporaryFolder(), 'read-only');
  chmodSync(join(folder, '..'), 0o755);
  mkdirSync(folder);
  const path = join(folder, 'locks.db');
  if (which === 'with') {
    const { backend } = open(path);
    await take(backend, request('a'));
    await backend.close();
    chmodSync(path, 0o666);
  }
  chmodSync(folder, 0o555);
  expect(await attemptAsNobody(path)).toMatch(/^READ_ONLY lock file/);
});

test('a full disk fails the acquire that does not fit, and works again when there is space', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  // A size limit for files is a disk that is full for this process: writes beyond it fail.
  const program = `
    process.on('SIGXFSZ', () => undefined);
    const { sqliteBackend } = await import(${JSON.stringify(entry)});
    const backend = sqliteBackend(process.argv[1]);
    const call = { now: () => performance.now(), deadline: Infinity };
    const codes = new Set();
    for (let n = 0; n < 3000; n += 1) {
      const request = { resource: 'x'.repeat(400) + n, acquisitionId: String(n), mode: { kind: 'exclusive' }, ttlMs: 60000 };
      const result = await backend.attempt(request, false, call).catch((error) => error);
      if (result.code === undefined) continue;
      console.log(result.code, result.message);
      break;
    }`;
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const node = [process.execPath, '--input-type=module', '-e', program, path].map(quote).join(' ');
  const { stdout } = await run('bash', ['-c', `ulimit -f 600; exec ${node}`]);
  expect(stdout).toMatch(/^FULL lock file/);
  const { backend } = open(path);
  const grant = await take(backend, request('a'));
  expect(await backend.release(grant, call)).toBe('released');
  const db = new DatabaseSync(path);
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  db.close();
});

test('a file that is deleted while in use is made again, and its leases are reported as lost', async () => {
  const { backend, path } = open();
  const grant = await take(backend, request('a'));
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
  await expect
    .poll(() => backend.renew([{ grant, ttlMs: 60_000 }], call), { timeout: 5_000, interval: 100 })
    .toEqual([{ status: 'lost', reason: 'force-released' }]);
  const next = await take(open(path).backend, request('a'));
  expect(next.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
});
