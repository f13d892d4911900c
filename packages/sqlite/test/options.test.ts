import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { sqliteBackend } from '../src/index.ts';
import { call, open, request, take, temporaryFolder } from './fixture.ts';

const run = promisify(execFile);
const entry = new URL('../src/index.ts', import.meta.url).href;

test.for([
  [undefined],
  [null],
  [{}],
  [{ path: 'locks.db' }],
  [''],
  [':memory:'],
  ['file:locks.db'],
  ['a\0b'],
  [7],
  ['a', 'b'],
  ['a', null],
  ['a', { path: 'a' }],
  ['a', { synchronous: 'off' }],
  ['a', { maxPollMs: 0 }],
  ['a', { maxPollMs: Number.NaN }],
  ['a', { maxPollMs: 1001 }],
  ['a', { pollMs: 5 }],
])('%j is refused at once', ([path, options]) => {
  expect(() => sqliteBackend(path as never, options as never)).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
});

test('constructing touches no file; the first call makes it', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const { backend } = open(path);
  expect(existsSync(path)).toBe(false);
  await take(backend, request('a'));
  expect(existsSync(path)).toBe(true);
});

test('with synchronous full the lock works as well', async () => {
  const { backend } = open(undefined, { synchronous: 'full' });
  const grant = await take(backend, request('a'));
  expect(await backend.release(grant, call)).toBe('released');
});

test('without node:sqlite the package can be imported, and says what it needs when used', async () => {
  const program = `
    const { sqliteBackend } = await import(${JSON.stringify(entry)});
    try { sqliteBackend('locks.db'); } catch (error) { console.log(error.code, error.message); }`;
  const { stdout } = await run(process.execPath, [
    '--no-experimental-sqlite',
    '--input-type=module',
    '-e',
    program,
  ]);
  expect(stdout).toMatch(/^LOCK_UNSUPPORTED .*22\.13/);
});

test('loading SQLite prints nothing and leaves process.emitWarning as it was', async () => {
  const program = `
    const before = process.emitWarning;
    const { sqliteBackend } = await import(${JSON.stringify(entry)});
    sqliteBackend('locks.db');
    if (process.emitWarning !== before) throw new Error('changed');`;
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', program]);
  expect(stdout + stderr).toBe('');
});

test('nothing keeps the process alive while nobody waits', async () => {
  const program = `
    const { sqliteBackend } = await import(${JSON.stringify(entry)});
    const backend = sqliteBackend(process.argv[1]);
    const call = { now: () => performance.now(), deadline: Infinity };
    const request = (acquisitionId) => ({ resource: 'a', acquisitionId, mode: { kind: 'exclusive' }, ttlMs: 60000 });
    console.log((await backend.attempt(request('1'), true, call)).status);
    console.log((await backend.attempt(request('2'), true, call)).status);`;
  const path = join(temporaryFolder(), 'locks.db');
  const args = ['--input-type=module', '-e', program, path];
  const { stdout } = await run(process.execPath, args, { timeout: 20_000 });
  expect(stdout).toBe('granted\ncontended\n');
});
