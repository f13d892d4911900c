const CHECK_MS = 500;

/** Keeps the process alive while anybody waits: a wait that only a promise carries would let Node exit. */
export class ProcessKeepAlive {
  readonly #check: (() => void) | undefined;
  #waiting = 0;
  #handle: NodeJS.Timeout | undefined;

  /** @param check - called twice a second while anybody waits */
  constructor(check: (() => void) | undefined) {
    this.#check = check;
  }

  enter(): void {
    this.#waiting += 1;
    this.#handle ??=
      this.#check === undefined ? setInterval(() => {}, 2 ** 30) : setInterval(this.#check, CHECK_MS);
  }

  leave(): void {
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    clearInterval(this.#handle);
    this.#handle = undefined;
  }
}
