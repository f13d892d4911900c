import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  type FSWatcher,
  openSync,
  realpathSync,
  rmSync,
  statSync,
  watch,
  writeSync,
} from 'node:fs';

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * The file by which other processes wake one backend object that waits: it watches the file, and they write to it. A wake-up
 * is a hint: it may be lost, or come for nothing.
 */
export class WakeFile {
  readonly #lockFile: string;
  readonly #client: number | string;
  readonly #woken: () => void;
  #realPath: string | undefined;
  #watcher: FSWatcher | undefined;
  #works = false;

  constructor(lockFile: string, client: number | string, woken: () => void) {
    this.#lockFile = lockFile;
    this.#client = client;
    this.#woken = woken;
  }

  /** Whether a wake-up has arrived since the file is watched. */
  get works(): boolean {
    return this.#works;
  }

  /** Makes and watches the file, and wakes this object itself, until that has worked. */
  prepare(): void {
    if (this.#works) return;
    try {
      this.#realPath = realpathSync(this.#lockFile);
      this.#watcher ??= this.#watch(this.#realPath);
      wake(this.#realPath, this.#client);
    } catch {
      // There is no permission, or no watch left: the poller works without wake-ups.
    }
  }

  /** Ends the watch, and removes the file. */
  close(): void {
    this.#unwatch();
    if (this.#realPath !== undefined) removeWakeFile(this.#realPath, this.#client);
  }

  #watch(realPath: string): FSWatcher {
    const path = create(realPath, this.#client);
    const watcher = watch(path, { persistent: false }, (event) => {
      // Others removed the file, since this object had no waiters or stood still.
      if (event === 'rename') return this.#unwatch();
      this.#works = true;
      this.#woken();
    });
    return watcher.on('error', () => this.#unwatch());
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#works = false;
  }
}

/** Wakes the backend object of a client, in whatever process. */
export function wake(realPath: string, client: number | string): void {
  try {
    // A link or a pipe that somebody put there is not followed, nor waited for. Windows has neither flag: undefined counts as 0.
    const file = openSync(wakePath(realPath, client), O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      writeSync(file, '.', 0);
    } finally {
      closeSync(file);
    }
  } catch {
    // The client has no file, or the disk is full: its poller works without wake-ups.
  }
}

/** Removes the wake file of a client that ended or is silent. If it lives it makes another one. */
export function removeWakeFile(realPath: string, client: number | string): void {
  try {
    rmSync(wakePath(realPath, client), { force: true });
  } catch {
    // It is no file of ours, or the folder cannot be written.
  }
}

/** Makes the file as SQLite makes its own: whoever may write the lock file may write this one. */
function create(realPath: string, client: number | string): string {
  removeWakeFile(realPath, client);
  const path = wakePath(realPath, client);
  const { mode, uid, gid } = statSync(realPath);
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL, 0o600);
  try {
    fchmodSync(file, mode & 0o666);
    if (process.getuid?.() === 0) fchownSync(file, uid, gid);
  } finally {
    closeSync(file);
  }
  return path;
}

function wakePath(realPath: string, client: number | string): string {
  return `${realPath}-wake-${client}`;
}
