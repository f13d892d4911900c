import type { CallContext, INTERRUPTED } from './call-context.ts';
import type { Failure } from './failure.ts';

interface Queued {
  readonly admit: () => void;
  state: 'queued' | 'admitted' | 'gave-up';
}

/**
 * Limits how many calls are under way at once; the others wait, in the order in which they came. Acquires and abandons each
 * have a limit. Releases and renewals have none: however many waiters a process has, never more than these calls are in front
 * of a release in the queue that a client of the store may have (docs/spec.md §7.6).
 */
export class CallLimit {
  readonly #max: number;
  #underWay = 0;
  readonly #queue: Queued[] = [];
  readonly #leave = (): void => {
    this.#underWay -= 1;
    if (this.#queue.length > 0 && this.#underWay < this.#max) this.#admitNext();
  };

  constructor(max: number) {
    this.#max = max;
  }

  /** As {@link CallContext.answerOf}, when the call's turn has come; a caller who gave up before sends nothing. */
  answerOf<T>(
    context: CallContext,
    send: () => T | Promise<T>,
    late?: (answer: T) => void,
  ): Promise<T | Failure | typeof INTERRUPTED> {
    if (this.#underWay >= this.#max) return this.#answerInTurn(context, send, late);
    this.#underWay += 1;
    const answer = context.answerOf(send, late);
    void answer.then(this.#leave);
    return answer;
  }

  /** Does `work` when its turn has come, however long that takes. `work` must not reject. */
  async inTurn(work: () => Promise<void>): Promise<void> {
    if (this.#underWay < this.#max) this.#underWay += 1;
    else await new Promise<void>((admit) => void this.#queue.push({ admit, state: 'queued' }));
    await work();
    this.#leave();
  }

  /** Admits all who wait, because the store does not answer: some in each turn of the event loop. */
  admitAll(): void {
    for (let admitted = 0; admitted < this.#max && this.#admitNext(); admitted += 1);
    if (this.#queue.length > 0) setImmediate(() => this.admitAll());
  }

  async #answerInTurn<T>(
    context: CallContext,
    send: () => T | Promise<T>,
    late: ((answer: T) => void) | undefined,
  ): Promise<T | Failure | typeof INTERRUPTED> {
    let admit = (): void => {};
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    const entry: Queued = { admit, state: 'queued' };
    this.#queue.push(entry);
    await context.answerOf(() => admitted);
    const answer = await context.answerOf(send, late);
    // A caller may be admitted in the moment in which it gives up.
    if (entry.state === 'admitted') this.#leave();
    entry.state = 'gave-up';
    return answer;
  }

  #admitNext(): boolean {
    for (let entry = this.#queue.shift(); entry !== undefined; entry = this.#queue.shift()) {
      if (entry.state === 'gave-up') continue;
      entry.state = 'admitted';
      this.#underWay += 1;
      entry.admit();
      return true;
    }
    return false;
  }
}
