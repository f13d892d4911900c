/** Reports what is measured now, and since when. */
export class Progress {
  readonly failures: string[] = [];
  readonly #say: (text: string) => void;
  readonly #startedAt = performance.now();

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  report(what: string): void {
    const seconds = (performance.now() - this.#startedAt) / 1000;
    this.#say(`${seconds.toFixed(0).padStart(4)} s  ${what}`);
  }

  /** Runs one part; a failure is reported, and the other parts go on. */
  async part<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    this.report(what);
    try {
      return await work();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.failures.push(`${what}: ${message.split('\n')[0]}`);
      this.#say(`        FAILED: ${message}`);
      return undefined;
    }
  }
}
