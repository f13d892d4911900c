import { execFile } from 'node:child_process';
import fs, { readdirSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { SlotEntry } from '@locks/core/backend';
import { createLocks } from '@locks/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileBackend, fileResults, fileSlots } from '../src/index.ts';
import { bootFolder, temporaryFolder, until } from './fixture.ts';

const freshFolder = (): string => join(temporaryFolder(), 'locks');
/** Beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (slot: string, token: bigint): SlotEntry => ({
  slot,
  state: 'done',
  token,
  label: 'machine-1',
  at: 1_700_000_000_000,
});
/** Syncs of this folder fail from now on: when it is opened, or afterwards. */
function failSyncsOf(folder: string, call: 'open' | 'fsync', code: string): void {
  const { openSync, fsyncSync } = fs;
  onTestFinished(() => {
    Object.assign(fs, { openSync, fsyncSync });
    syncBuiltinESMExports();
  });
  let opened: number | undefined;
  const fail = (): never => {
    throw Object.assign(new Error(code), { code });
  };
  Object.assign(fs, {
    openSync(path: string, flags: string) {
      if (path === folder && call === 'open') fail();
      const descriptor = openSync(path, flags);
      if (path === folder) opened = descriptor;
      else if (descriptor === opened) opened = undefined;
      return descriptor;
    },
    fsyncSync: (descriptor: number) => (descriptor === opened ? fail() : fsyncSync(descriptor)),
  });
  syncBuiltinESMExports();
}

const WRONG: readonly [unknown][] = [[undefined], [''], [{ path: 'x' }]];

describe('fileSlots', () => {
  it('keeps the last slot of each job, for every slot store of the folder, outside that of a boot', async () => {
    const folder = freshFolder();
    const slots = fileSlots(folder);
    expect(await slots.read('invoices')).toEqual({ entry: undefined, storeTime: undefined });
    expect(await slots.write('invoices', entry('2030-01-01', TOKEN))).toBe(true);
    expect(await slots.write('Re/ports', entry('2030-01-02', 1n))).toBe(true);
    expect((await fileSlots(folder).read('invoices')).entry).toEqual(entry('2030-01-01', TOKEN));
    expect((await slots.read('Re/ports')).entry).toEqual(entry('2030-01-02', 1n));
    expect(readdirSync(folder)).toEqual(['once']);
  });

  it('refuses an older token, takes the same one again, and leaves one file', async () => {
    const folder = freshFolder();
    const slots = fileSlots(folder);
    await slots.write('invoices', entry('2030-01-02', TOKEN));
    expect(await slots.write('invoices', entry('2030-01-01', TOKEN - 1n))).toBe(false);
    expect((await slots.read('invoices')).entry?.slot).toBe('2030-01-02');
    expect(await slots.write('invoices', { ...entry('2030-01-02', TOKEN), state: 'begun' })).toBe(true);
    expect((await slots.read('invoices')).entry?.state).toBe('begun');
    // What a writer leaves that was killed between its two steps.
    writeFileSync(join(folder, 'once', 'invoices', '9'), 'an older entry');
    expect((await slots.read('invoices')).entry?.state).toBe('begun');
    expect(await slots.write('invoices', entry('2030-01-03', TOKEN + 1n))).toBe(true);
    expect((await slots.read('invoices')).entry).toEqual(entry('2030-01-03', TOKEN + 1n));
    expect(readdirSync(join(folder, 'once', 'invoices'))).toEqual([`${TOKEN + 1n}`]);
  });

  it('may be in the folder of the locks, which does not sweep it', async () => {
    const folder = freshFolder();
    const token = await createLocks(fileBackend(folder))
      .lock('invoices')
      .run(async ({ fencingToken }) => {
        expect(await fileSlots(folder).write('invoices', entry('2030-01-01', fencingToken))).toBe(true);
        return fencingToken;
      });
    await using locks = createLocks(fileBackend(folder));
    await locks.lock('invoices').run((lease) => expect(lease.fencingToken).toBeGreaterThan(token));
    expect((await fileSlots(folder).read('invoices')).entry?.token).toBe(token);
  });

  it.each([
    ['open', 'EACCES'],
    ['open', 'EPERM'],
    ['fsync', 'EINVAL'],
    ['fsync', 'EROFS'],
    ['fsync', 'ENOTSUP'],
  ] as const)(
    'writes below a folder that cannot be synced, but into none: %s fails with %s',
    async (fails, code) => {
      const folder = freshFolder();
      failSyncsOf(dirname(folder), fails, code);
      expect(await fileSlots(folder).write('job', entry('2030-01-01', 1n))).toBe(true);
      for (const within of ['', 'once', 'once/job']) {
        failSyncsOf(join(folder, within), fails, code);
        const failure = await fileSlots(folder)
          .write('job', entry('2030-01-01', 1n))
          .catch((error) => (error.cause ?? error).code);
        expect(failure, within).toBe(code);
      }
    },
  );

  it('fails where a folder above could be synced, and was not', async () => {
    const folder = freshFolder();
    failSyncsOf(dirname(folder), 'fsync', 'EIO');
    await expect(fileSlots(folder).write('job', entry('1', 1n))).rejects.toMatchObject({ code: 'EIO' });
  });

  it.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'writes on a disk that is mounted below sysfs, which syncs no folder',
    async () => {
      const program = `
        const { fileSlots } = await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)});
        const entry = { slot: '1', state: 'done', token: 1n, label: 'me', at: 1 };
        console.log(await fileSlots('/sys/kernel/mm/locks').write('job', entry));`;
      const script = 'mount -t tmpfs none /sys/kernel/mm && exec "$1" --input-type=module -e "$2"';
      const args = ['--mount', 'sh', '-c', script, 'sh', process.execPath, program];
      expect((await promisify(execFile)('unshare', args)).stdout).toBe('true\n');
    },
  );

  it('says what is wrong with the folder', async () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    await expect(fileSlots(file).read('x')).rejects.toMatchObject({ code: 'NOT_A_FOLDER' });
    await expect(fileSlots(file).write('x', entry('1', 1n))).rejects.toMatchObject({ code: 'NOT_A_FOLDER' });
  });

  it.each(WRONG)('refuses %j at once', (folder) => {
    expect(() => fileSlots(folder as string)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});

describe('fileResults', () => {
  it('keeps the newest result of each key until its end, for every process of the folder', async () => {
    const folder = freshFolder();
    const [results, other] = [fileResults(folder), fileResults(folder)];
    expect(await results.get('prices')).toBeUndefined();
    await results.set('prices', 'é', TOKEN, 60_000);
    const late = other.set('prices', 'late', TOKEN - 1n, 60_000);
    await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(await other.get('prices')).toBe('é');
    expect(await results.get('rates')).toBeUndefined();
    await results.set('prices', 'brief', TOKEN, 50);
    await until(async () => (await results.get('prices')) === undefined);
    await expect(other.set('prices', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({
      code: 'LOCK_LOST',
    });
    await other.set('prices', 'newer', TOKEN + 1n, 60_000);
    expect(await results.get('prices')).toBe('newer');
    expect(readdirSync(join(bootFolder(folder), 'k'))).toEqual([expect.stringContaining('prices')]);
  });

  it.each(WRONG)('refuses %j at once', (folder) => {
    expect(() => fileResults(folder as string)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
