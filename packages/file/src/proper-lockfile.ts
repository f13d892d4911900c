import { setTimeout as sleep } from 'node:timers/promises';
import { HeldLockfile } from './held-lockfile.ts';
import { type DirectoryHold, finished, isDirectoryHeld, takeDirectory } from './lock-directory.ts';
import { LockfileError } from './lockfile-error.ts';
import {
  type CheckedLock,
  type CheckOptions,
  type LockfileOptions,
  readCheck,
  readLock,
  readUnlock,
  type UnlockOptions,
} from './lockfile-options.ts';

export { LockfileError, type LockfileErrorCode } from './lockfile-error.ts';
export type { CheckOptions, LockfileRetries, LockfileOptions, UnlockOptions } from './lockfile-options.ts';

// setup: import { lock } from '@locks/file/proper-lockfile';
/**
 * Locks a file among all processes that lock it with this function, or with proper-lockfile 4. The lock is a directory beside the file.
 *
 * @returns the function that releases the lock
 * @throws LockfileError `ELOCKED` where somebody holds it after all retries; LockError `LOCK_INVALID_ARGUMENT`; an error of the file system
 * @example
 * ```ts
 * const release = await lock('settings.json', { retries: 5 });
 * await release();
 * ```
 */
export async function lock(file: string, options?: LockfileOptions): Promise<() => Promise<void>> {
  const checked = readLock('lock()', file, options, false);
  const pauses = checked.pauses()[Symbol.iterator]();
  for (;;) {
    try {
      const held = heldBy(await finished(takeDirectory(directoryOf(checked), checked.staleMs)), checked);
      return async () => held.release();
    } catch (error) {
      const pause = pauses.next();
      if (pause.done === true) throw error;
      await sleep(pause.value);
    }
  }
}

// setup: import { unlock } from '@locks/file/proper-lockfile';
/**
 * Releases the lock that this process has on a file.
 *
 * @throws LockfileError `ENOTACQUIRED` where it has none, `ECOMPROMISED` where it was lost; LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * await unlock('settings.json');
 * ```
 */
export async function unlock(file: string, options?: UnlockOptions): Promise<void> {
  release('unlock()', file, options);
}

// setup: import { check } from '@locks/file/proper-lockfile';
/**
 * Tells whether somebody holds the lock of a file.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`; an error of the file system
 * @example
 * ```ts
 * console.log(await check('settings.json'));
 * ```
 */
export async function check(file: string, options?: CheckOptions): Promise<boolean> {
  return isHeld('check()', file, options);
}

// setup: import { lockSync } from '@locks/file/proper-lockfile';
/**
 * Does what {@link lock} does, without a promise and without retries. A takeover blocks the thread for 50 ms.
 *
 * @throws LockfileError `ELOCKED`, `ESYNC` for retries; LockError `LOCK_INVALID_ARGUMENT`; an error of the file system
 * @example
 * ```ts
 * const release = lockSync('settings.json');
 * release();
 * ```
 */
export function lockSync(file: string, options?: LockfileOptions): () => void {
  const checked = readLock('lockSync()', file, options, true);
  const take = takeDirectory(directoryOf(checked), checked.staleMs);
  let step = take.next();
  while (step.done !== true) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, step.value);
    step = take.next();
  }
  const held = heldBy(step.value, checked);
  return () => held.release();
}

// setup: import { unlockSync } from '@locks/file/proper-lockfile';
/**
 * Does what {@link unlock} does, without a promise.
 *
 * @throws LockfileError `ENOTACQUIRED`, `ECOMPROMISED`; LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * unlockSync('settings.json');
 * ```
 */
export function unlockSync(file: string, options?: UnlockOptions): void {
  release('unlockSync()', file, options);
}

// setup: import { checkSync } from '@locks/file/proper-lockfile';
/**
 * Does what {@link check} does, without a promise.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`; an error of the file system
 * @example
 * ```ts
 * console.log(checkSync('settings.json'));
 * ```
 */
export function checkSync(file: string, options?: CheckOptions): boolean {
  return isHeld('checkSync()', file, options);
}

function heldBy(hold: DirectoryHold | undefined, checked: CheckedLock): HeldLockfile {
  if (hold !== undefined) return new HeldLockfile(hold, checked);
  throw new LockfileError('ELOCKED', `somebody holds the lock of ${checked.file}`, checked.file);
}

function release(caller: string, file: string, options: UnlockOptions | undefined): void {
  const place = readUnlock(caller, file, options);
  const held = HeldLockfile.of(place);
  if (held === undefined)
    throw new LockfileError(
      'ENOTACQUIRED',
      `this process does not hold the lock of ${place.file}`,
      place.file,
    );
  held.release();
}

function isHeld(caller: string, file: string, options: CheckOptions | undefined): boolean {
  const checked = readCheck(caller, file, options);
  return isDirectoryHeld(directoryOf(checked), checked.staleMs);
}

function directoryOf({ file, lockfilePath }: Pick<CheckedLock, 'file' | 'lockfilePath'>): string {
  return lockfilePath ?? `${file}.lock`;
}
