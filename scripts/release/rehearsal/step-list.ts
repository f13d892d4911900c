/** One line of the rehearsal. */
export interface Outcome {
  readonly name: string;
  readonly seconds: number;
  readonly outcome: 'ok' | 'failed' | 'absent';
  /** What was seen, or why it failed. */
  readonly note: string;
}

/** Runs steps one after the other and keeps what became of each. */
export class StepList {
  readonly outcomes: Outcome[] = [];
  readonly #onStep: (outcome: Outcome) => void;

  constructor(onStep: (outcome: Outcome) => void) {
    this.#onStep = onStep;
  }

  get hasFailed(): boolean {
    return this.outcomes.some(({ outcome }) => outcome === 'failed');
  }

  /** Rejects when the step fails, which is noted: what needs its result cannot run. */
  async run<T>(name: string, work: () => Promise<readonly [result: T, note: string]>): Promise<T> {
    const start = performance.now();
    const seconds = () => (performance.now() - start) / 1_000;
    try {
      const [result, note] = await work();
      this.#add({ name, seconds: seconds(), outcome: 'ok', note });
      return result;
    } catch (error) {
      const note = error instanceof Error ? error.message : String(error);
      this.#add({ name, seconds: seconds(), outcome: 'failed', note });
      throw error;
    }
  }

  absent(name: string, note: string): void {
    this.#add({ name, seconds: 0, outcome: 'absent', note });
  }

  #add(outcome: Outcome): void {
    this.outcomes.push(outcome);
    this.#onStep(outcome);
  }
}
