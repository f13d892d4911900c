import type { Checkpoint } from '../conduct/checkpoint.ts';

/** Reports what is measured now, and since when. Keeps what was measured. */
export class Progress {
  readonly failures: string[] = [];
  /** The seconds that each part took, by the first word of its name. */
  readonly seconds: Record<string, number> = {};
  readonly #say: (text: string) => void;
  readonly #checkpoint: Checkpoint | undefined;
  readonly #startedAt = performance.now();
  #depth = 0;

  constructor(say: (text: string) => void, checkpoint?: Checkpoint) {
    this.#say = say;
    this.#checkpoint = checkpoint;
  }

  report(what: string): void {
    const seconds = (performance.now() - this.#startedAt) / 1000;
    this.#say(`${seconds.toFixed(0).padStart(4)} s  ${what}`);
  }

  /**
   * Runs one part; a failure is reported, and the other parts go on. A part that an earlier run has done is not run again: its
   * name is unique, and its result is kept as JSON. A part inside of another one belongs to that.
   */
  async part<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    const isOuter = this.#depth === 0;
    const done = isOuter ? this.#checkpoint?.get(what) : undefined;
    if (done !== undefined) {
      this.report(`${what}: done before`);
      this.#count(what, done.seconds);
      return done.result as T;
    }
    this.report(what);
    const startedAt = performance.now();
    const failuresBefore = this.failures.length;
    this.#depth += 1;
    try {
      const result = await work();
      const seconds = (performance.now() - startedAt) / 1000;
      if (isOuter) this.#count(what, seconds);
      if (isOuter && this.failures.length === failuresBefore)
        this.#checkpoint?.keep(what, { seconds, result });
      return result;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.failures.push(`${what}: ${message.split('\n')[0]}`);
      this.#say(`        FAILED: ${message}`);
      return undefined;
    } finally {
      this.#depth -= 1;
    }
  }

  #count(what: string, seconds: number): void {
    const [row = what] = what.split(/[ :]/);
    this.seconds[row] = Math.round((this.seconds[row] ?? 0) + seconds);
  }
}
