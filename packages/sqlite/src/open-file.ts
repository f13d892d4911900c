import type { LockFile } from './lock-file.ts';
import type { Steps } from './steps.ts';

export interface Opened {
  readonly file: LockFile;
  readonly steps: Steps;
}

const IDENTITY_CHECK_EVERY_MS = 1_000;

/** The lock file while it is open: opened at the first use, and anew after a failure or if another file took its place. */
export class OpenFile {
  readonly #open: () => Opened;
  #opened: Opened | undefined;
  #checkedAt = 0;

  constructor(open: () => Opened) {
    this.#open = open;
  }

  get current(): Opened | undefined {
    return this.#opened;
  }

  ready(): Opened {
    const now = performance.now();
    if (this.#opened !== undefined && now - this.#checkedAt > IDENTITY_CHECK_EVERY_MS) {
      this.#checkedAt = now;
      // The file was deleted or replaced: the new one is used, as all others do. Renewals report the lost leases.
      if (!this.#opened.file.isInPlace()) this.drop();
    }
    if (this.#opened === undefined) {
      this.#opened = this.#open();
      this.#checkedAt = now;
    }
    return this.#opened;
  }

  drop(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    try {
      opened?.file.close();
    } catch {
      // A failed close is ignored: nothing more can be done with the file.
    }
  }
}
