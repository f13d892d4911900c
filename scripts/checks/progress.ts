// Own code: neither turbo nor vitest says how many steps there are in all, and how long the rest takes.
import { secondsOf } from './durations.ts';
import type { Step, StepReport } from './step.ts';

type PlannedStep = Pick<Step, 'name' | 'kind'>;

const REFRESH_MS = 1_000;

/** Says what runs and what is left: in one line at the bottom of a terminal, elsewhere in a line for each step that ends. */
export class Progress {
  readonly #planned: readonly PlannedStep[];
  readonly #lanes: number;
  readonly #running = new Map<string, number>();
  readonly #ended = new Set<string>();
  readonly #terminal = process.stdout.isTTY;
  #telling: NodeJS.Immediate | undefined;
  #secondsLeft = 0;
  #estimatedAt = 0;

  constructor(planned: readonly PlannedStep[], lanes: number) {
    this.#planned = planned;
    this.#lanes = lanes;
    this.#estimate();
    console.log(`${planned.length} steps, about ${inWords(this.#secondsLeft)}`);
    if (this.#terminal) setInterval(() => this.#refresh(), REFRESH_MS).unref();
  }

  started({ name }: Pick<Step, 'name'>): void {
    this.#running.set(name, performance.now());
    this.#tell();
  }

  /** @param told - what there is to tell about the step */
  ended({ name }: Pick<StepReport, 'name'>, told: string): void {
    this.#running.delete(name);
    this.#ended.add(name);
    this.#estimate();
    const [first = '', ...more] = told.split('\n');
    const count = `${this.#ended.size}/${this.#planned.length}`.padStart(7);
    console.log([`${this.#terminal ? CLEAR : ''}${count} ${first}`, ...more].join('\n'));
    this.#tell();
  }

  /** The steps that have not ended: those under way, and those that did not begin. */
  unfinished(): { readonly running: readonly string[]; readonly waiting: readonly string[] } {
    const running = [...this.#running.keys()];
    return { running, waiting: this.#left().filter((name) => !running.includes(name)) };
  }

  #left(): string[] {
    return this.#planned.map(({ name }) => name).filter((name) => !this.#ended.has(name));
  }

  #estimate(): void {
    const left = this.#planned.filter(({ name }) => !this.#ended.has(name));
    this.#secondsLeft = secondsOf(left, this.#lanes);
    this.#estimatedAt = performance.now();
  }

  #status(): string {
    const now = performance.now();
    const running = [...this.#running].map(
      ([name, since]) => `${name} ${((now - since) / 1_000).toFixed(0)} s`,
    );
    const left = Math.max(1, this.#secondsLeft - (now - this.#estimatedAt) / 1_000);
    return `${this.#left().length} left, about ${inWords(left)}; now ${running.join(', ')}`;
  }

  /** Once all that begins or ends in this moment has done so. */
  #tell(): void {
    clearImmediate(this.#telling);
    this.#telling = setImmediate(() => {
      if (this.#terminal) this.#refresh();
      else if (this.#running.size > 0) console.log(`        ${this.#status()}`);
    });
  }

  #refresh(): void {
    if (this.#running.size === 0) return;
    const line = this.#status().slice(0, Math.max(20, process.stdout.columns - 1));
    process.stdout.write(`${CLEAR}${line}`);
  }
}

/** To the start of the line, and what stands there away. */
const CLEAR = '\r\u001B[2K';

function inWords(seconds: number): string {
  return seconds < 90 ? `${seconds.toFixed(0)} s` : `${(seconds / 60).toFixed(0)} min`;
}
