/** The end of a connection, which is told once, whoever ends it. */
export class ConnectionEnd {
  isOver = false;
  readonly #listeners: ((why: Error) => void)[] = [];

  add(listener: (why: Error) => void): void {
    this.#listeners.push(listener);
  }

  tell(why: string): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const listener of this.#listeners) listener(new Error(why));
  }
}
