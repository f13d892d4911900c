/** Keeps the process alive while anybody waits: a wait that only a promise carries would let Node exit. */
export class ProcessKeepAlive {
  #waiting = 0;
  #handle: NodeJS.Timeout | undefined;

  enter(): void {
    this.#waiting += 1;
    this.#handle ??= setInterval(() => {}, 2 ** 30);
  }

  leave(): void {
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    clearInterval(this.#handle);
    this.#handle = undefined;
  }
}
