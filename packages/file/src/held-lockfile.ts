import { codeOf } from './lock-folder-error.ts';
import { type DirectoryHold, finished, keepDirectory } from './lock-directory.ts';
import { LockfileError } from './lockfile-error.ts';
import type { CheckedLock } from './lockfile-options.ts';

/** The pause before another try of an update that failed, in milliseconds. */
const RETRY_MS = 1_000;

/** The locks of this process, by the path of the directory. */
const held = new Map<string, HeldLockfile>();

/** A lockfile that this process holds, and keeps fresh. */
export class HeldLockfile {
  readonly #hold: DirectoryHold;
  readonly #lock: CheckedLock;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(hold: DirectoryHold, lock: CheckedLock) {
    this.#hold = hold;
    this.#lock = lock;
    if (held.size === 0) process.on('exit', removeAll);
    held.set(hold.path, this);
    this.#updateAfter(lock.updateMs);
  }

  /** The lock of this process on a file; by the path of its directory, where that was given. */
  static of({ file, lockfilePath }: Pick<CheckedLock, 'file' | 'lockfilePath'>): HeldLockfile | undefined {
    if (lockfilePath !== undefined) return held.get(lockfilePath);
    return [...held.values()].find((each) => each.#lock.file === file);
  }

  /** @throws LockfileError `ERELEASED`, `ECOMPROMISED`; an error of the file system */
  release(): void {
    const { file } = this.#lock;
    if (this.#isOver) throw new LockfileError('ERELEASED', `the lock of ${file} was released before`, file);
    this.#end();
    let isOurs = false;
    try {
      isOurs = this.#hold.isOurs();
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
    if (!isOurs) throw this.#lost();
    this.#hold.remove();
  }

  /** At the end of the process. */
  removeQuietly(): void {
    try {
      if (this.#hold.isOurs()) this.#hold.remove();
    } catch {
      // Others take it over once they see that this process has ended.
    }
  }

  #updateAfter(ms: number): void {
    this.#timer = setTimeout(() => void this.#update(), ms);
    this.#timer.unref();
  }

  async #update(): Promise<void> {
    const { staleMs, updateMs } = this.#lock;
    const isLate = this.#hold.lateness(staleMs);
    let isKept = false;
    let cause: unknown;
    try {
      isKept = await finished(keepDirectory(this.#hold, staleMs));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' && !isLate()) {
        if (!this.#isOver) this.#updateAfter(RETRY_MS);
        return;
      }
      cause = error;
    }
    if (this.#isOver) return;
    if (isKept) return this.#updateAfter(updateMs);
    this.#end();
    const error = this.#lost(cause);
    // Outside of this promise: what the function throws is an uncaught exception, as of any timer.
    setImmediate(() => this.#lock.onCompromised(error));
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    held.delete(this.#hold.path);
    if (held.size === 0) process.off('exit', removeAll);
  }

  #lost(cause?: unknown): LockfileError {
    const { file } = this.#lock;
    const says = `the lock of ${file} was lost: its directory was removed or taken over, or could not be written in time`;
    return new LockfileError('ECOMPROMISED', says, file, { cause });
  }
}

/**
 * At `exit`, and at no signal: a second listener beside that of `signal-exit` would let neither of both end the process. Whom a signal ended is
 * known to have ended.
 */
function removeAll(): void {
  for (const lock of held.values()) lock.removeQuietly();
}
