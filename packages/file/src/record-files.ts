import { closeSync, openSync, readdirSync, renameSync, rmdirSync, rmSync, unlinkSync } from 'node:fs';
import { join, sep } from 'node:path';
import { escapeKey, type KeyAlphabet, type RecordWrite, type StoredRecord } from '@locks/record-protocol';
import { codeOf, LockFolderError } from './lock-folder-error.ts';
import type { LockFolder } from './lock-folder.ts';
import { latest, numberIn, type Pointer, pointerOf } from './pointer.ts';
import { ValueFiles } from './value-files.ts';

/** No capitals: macOS and Windows take them for small letters. */
export const ALPHABET: KeyAlphabet = {
  plain: 'abcdefghijklmnopqrstuvwxyz0123456789_-',
  escape: '=',
  maxLength: 120,
};
/** The start of the keys of clients. */
export const CLIENT = 'client/';
/** How often a list without a pointer, or a pointer without its value, is read again before it is believed. */
const MOST_TRIES = 4;
/** Clocks of one boot agree to far less than this. */
const CLOCK_SLACK_MICROS = 1_000_000;

/** What is written, and under which conditions it may be deleted. */
export type NewValue = Pick<RecordWrite, 'isIdle' | 'heldUntilMs'> & { readonly value: Uint8Array };

/**
 * The records of one folder. A record is a folder with one empty file, the pointer, whose name is the version and says where the value is. A write
 * appends its value to a file of its process, and then renames the pointer: that works for one process only, and a name never comes back, so
 * a process that stood still renames nothing. The first pointer comes in a folder that is made aside and moved to its place, which
 * works only where there is none or an empty one. A deletion unlinks the pointer.
 */
export class RecordFiles {
  readonly folder: LockFolder;
  readonly values: ValueFiles;

  constructor(folder: LockFolder, isShared: boolean) {
    this.folder = folder;
    this.values = new ValueFiles(folder.values, isShared);
  }

  /** Whether the folder, and the file of this process in it, are still there. */
  isInPlace(): boolean {
    return this.folder.isInPlace() && this.values.isInPlace();
  }

  /** Reads the record in a folder; `undefined`: there is none. */
  read(path: string): (StoredRecord & { readonly pointer: Pointer }) | undefined {
    let missed: Pointer | undefined;
    for (let tries = 1; ; tries += 1) {
      const pointer = this.pointer(path);
      if (pointer === undefined) return undefined;
      const value = this.values.read(pointer);
      if (value !== undefined) return { version: pointer.name, value, pointer };
      // A value is deleted once its pointer was renamed.
      if (missed?.name !== pointer.name) tries = 1;
      missed = pointer;
      if (tries === MOST_TRIES) this.#heal(path, pointer);
    }
  }

  /** The pointer of the record in a folder. */
  pointer(path: string): Pointer | undefined {
    for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
      const names = namesIn(path);
      if (names === undefined) return undefined;
      const pointer = latest(names);
      // A list that was read while the pointer was renamed may lack both names.
      if (pointer === undefined) continue;
      if (!this.#isOfEarlierBoot(pointer)) return pointer;
      this.remove(path, pointer.name);
    }
    return undefined;
  }

  /** Replaces a record of this version. Returns its new version; `undefined`: it has another one. */
  replace(path: string, from: string, { value, isIdle, heldUntilMs }: NewValue): string | undefined {
    const number = Math.max(numberIn(from) + 1, this.folder.clock.nowMicros());
    return this.#move(path, from, value, { number, until: microsOf(heldUntilMs), isIdle });
  }

  /** Moves the value of a record into the file of this process. */
  adopt(path: string, from: Pointer): void {
    const value = this.values.read(from);
    if (value !== undefined) this.#move(path, from.name, value, { ...from, number: from.number + 1 });
  }

  create(path: string, { value, isIdle, heldUntilMs }: NewValue): string | undefined {
    const names = namesIn(path) ?? [];
    if (latest(names) !== undefined) return undefined;
    // Browsers of files leave files of their own.
    for (const name of names) rmSync(join(path, name), { recursive: true, force: true });
    const number = this.folder.clock.nowMicros();
    const { name } = pointerOf({
      ...this.values.append(value),
      number,
      until: microsOf(heldUntilMs),
      isIdle,
    });
    const aside = this.folder.aside();
    let isMoved = false;
    try {
      this.folder.makeFolder(aside);
      closeSync(openSync(join(aside, name), 'wx'));
      // Windows moves a folder to a free place only, and Linux also to that of an empty one.
      const isWindows = process.platform === 'win32';
      if (isWindows) removeEmpty(path);
      const taken = ['ENOTEMPTY', 'EEXIST', ...(isWindows ? ['EPERM'] : [])];
      isMoved = attempt(taken, () => renameSync(aside, path));
    } finally {
      if (!isMoved) rmSync(aside, { recursive: true, force: true });
    }
    return isMoved ? name : undefined;
  }

  /** Deletes a record. Returns whether it had this version. */
  remove(path: string, version: string): boolean {
    const isRemoved = attempt(['ENOENT'], () => unlinkSync(join(path, version)));
    if (isRemoved) removeEmpty(path);
    return isRemoved;
  }

  #move(
    path: string,
    from: string,
    value: Uint8Array,
    { number, until, isIdle }: Pick<Pointer, 'number' | 'until' | 'isIdle'>,
  ): string | undefined {
    const { name } = pointerOf({ ...this.values.append(value), number, until, isIdle });
    // Not `join`, which takes a third as long as the renaming.
    return attempt(['ENOENT'], () => renameSync(path + sep + from, path + sep + name)) ? name : undefined;
  }

  /** Where boots cannot be told apart: the clock began anew since. */
  #isOfEarlierBoot({ number }: Pointer): boolean {
    const { clock } = this.folder;
    return !clock.bootIsExact && number > clock.nowMicros() + CLOCK_SLACK_MICROS;
  }

  /** Something else has deleted the value. Nobody can tell who holds; all have ended once the pointer says so. */
  #heal(path: string, { name, until }: Pointer): void {
    if (until > this.folder.clock.nowMicros())
      throw new LockFolderError(
        'VALUE_MISSING',
        `the file with the value of ${join(path, name)} was deleted by something else. Its holders cannot be told, and the lock is free ` +
          'once they would have ended without a renewal. Exclude the folder of the locks from what cleans up there',
      );
    this.remove(path, name);
  }
}

/** The name of the folder of a record. */
export function nameOfKey(key: string): string {
  return escapeKey(key, ALPHABET);
}

/** The names in a folder; `undefined`: there is no such folder. */
export function namesIn(path: string): string[] | undefined {
  try {
    return readdirSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Removes a folder that is empty. Returns whether there is none now. */
export function removeEmpty(path: string): boolean {
  // Windows says EPERM for a folder that something has open.
  return attempt(['ENOTEMPTY', 'EEXIST', 'EPERM'], () => attempt(['ENOENT'], () => rmdirSync(path)));
}

/** Whether it worked; `false` for an error with one of these codes. */
function attempt(codes: readonly string[], act: () => unknown): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if (codes.includes(codeOf(error))) return false;
    throw error;
  }
}

function microsOf(ms: number | undefined): number {
  return Math.ceil((ms ?? 0) * 1_000);
}
