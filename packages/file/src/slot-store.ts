import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type SlotEntry, readSlotEntry, type SlotStore, slotEntryText } from '@locks/core/backend';
import { codeOf, explained, LockFolderError } from './lock-folder-error.ts';
import { refuseForeignFolder } from './lock-folder.ts';
import { makeFile, makeFolder, newName } from './new-files.ts';
import { type CheckedFileOptions, checkOptions, type FileBackendOptions } from './options.ts';
import { nameOfKey, namesIn } from './record-files.ts';

/** How often a list without an entry, or an entry that has gone, is read again before it is believed. */
const MOST_TRIES = 4;
const TOKEN = /^\d+$/;
/** What says that a folder cannot be synced: it may only be passed through or read, or its file system syncs none. */
const UNSYNCED = new Set(['EACCES', 'EINVAL', 'ENOTSUP', 'EPERM', 'EROFS']);

// setup: import { createLocks } from '@locks/core'; import { fileBackend, fileSlots } from '@locks/file'; import { day, once } from '@locks/once';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: files of a folder that all processes of the machine share.
 * Every write is on the disk before it is answered, so that a slot stays done after a restart of the machine.
 *
 * @param folder - a folder on a local disk, made when it is missing: that of the locks, or another one
 * @example
 * ```ts
 * const folder = './locks';
 * const locks = createLocks(fileBackend(folder));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: fileSlots(folder) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function fileSlots(folder: string, options?: FileBackendOptions): SlotStore {
  const checked = checkOptions(folder, options, 'fileSlots()');
  const pathOf = (name: string): string => join(checked.folder, 'once', nameOfKey(name));
  const attempt = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw explained(error, checked.folder);
    }
  };
  return {
    async read(name) {
      // Files have no clock: the time is that of this machine, which all its processes share.
      return attempt(() => ({ entry: newestEntry(pathOf(name)), storeTime: undefined }));
    },
    async write(name, entry) {
      return attempt(() => writeEntry(pathOf(name), entry, checked));
    },
  };
}

/** The folder of a job has a file for each token; the highest has the entry, and the others are about to be deleted. */
function newestEntry(path: string): SlotEntry | undefined {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const names = namesIn(path);
    if (names === undefined) return undefined;
    const newest = highest(names);
    try {
      if (newest !== undefined) return entryIn(join(path, `${newest}`));
    } catch (error) {
      // An entry is deleted once there is one with a higher token.
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
  return undefined;
}

function entryIn(path: string): SlotEntry {
  const text = readFileSync(path, 'utf8');
  try {
    return readSlotEntry(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const says = `the slot in ${path} was damaged by something else. Delete this file while nobody does the work: the slot may run again then`;
    throw new LockFolderError('VALUE_MISSING', says, { cause: error });
  }
}

/** A file that is moved to its place is whole, and an entry with a lower token than another one is never read. */
function writeEntry(path: string, entry: SlotEntry, { folder, shared }: CheckedFileOptions): boolean {
  makeFolder(folder, shared, true);
  refuseForeignFolder({ folder, shared });
  for (const each of [dirname(path), path]) makeFolder(each, shared, true);
  // Such a file is swept like those of the locks once its process has ended.
  const aside = join(folder, `t.${newName()}`);
  try {
    // A name is on the disk once the folder that has it is. Whoever made these, or those above, may have died before it came so far.
    for (const each of [dirname(path), folder]) syncFolder(each);
    for (let each = folder; each !== dirname(each); each = dirname(each)) syncFolderAbove(dirname(each));
    const file = makeFile(aside, shared);
    try {
      writeFileSync(file, slotEntryText(entry));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(aside, join(path, `${entry.token}`));
  } catch (error) {
    rmSync(aside, { force: true });
    removeIfEmpty(path);
    throw error;
  }
  // The entry before is deleted only when the new one is on the disk.
  syncFolder(path);
  const names = namesIn(path) ?? [];
  const newest = highest(names) ?? entry.token;
  for (const name of names)
    if (TOKEN.test(name) && BigInt(name) < newest) rmSync(join(path, name), { force: true });
  return newest === entry.token;
}

function highest(names: readonly string[]): bigint | undefined {
  let found: bigint | undefined;
  for (const name of names)
    if (TOKEN.test(name) && (found === undefined || BigInt(name) > found)) found = BigInt(name);
  return found;
}

/** Puts the names in a folder on the disk. Windows opens no folder, and its file system writes names with the files. */
function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** A folder that cannot be synced is one of the system or of another user, which was there before: no process of these has made a name in it. */
function syncFolderAbove(path: string): void {
  try {
    syncFolder(path);
  } catch (error) {
    if (!UNSYNCED.has(codeOf(error))) throw error;
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It has the entry before.
  }
}
