import { type CallContext, dropped, INTERRUPTED } from './call-context.ts';
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

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits until a call is admitted. `true`: it may be sent, and `leave` follows. `false`: its caller gave up before. */
  enter(context: CallContext): true | Promise<boolean> {
    if (this.#underWay >= this.#max) return this.#isAdmitted(context);
    this.#underWay += 1;
    return true;
  }

  /** Makes room for another call: this one was answered, or its caller gave up. */
  leave(): void {
    this.#underWay -= 1;
    if (this.#queue.length > 0 && this.#underWay < this.#max) this.#admitNext();
  }

  /** Calls {@link CallContext.answerOf} once the call is admitted; a caller who gave up before sends nothing. */
  async answerOf<T>(
    context: CallContext,
    send: () => T | Promise<T>,
    late: (answer: T) => void,
  ): Promise<T | Failure | typeof INTERRUPTED> {
    const admitted = this.enter(context);
    if (admitted !== true && !(await admitted)) return INTERRUPTED;
    const answer = await context.answerOf(send, late);
    this.leave();
    return answer;
  }

  /** Does `work` once it is admitted, however long that takes. `work` must not reject. */
  async whenAdmitted(work: () => Promise<void>): Promise<void> {
    if (this.#underWay < this.#max) this.#underWay += 1;
    else await new Promise<void>((admit) => void this.#queue.push({ admit, state: 'queued' }));
    await work();
    this.leave();
  }

  /** Admits all who wait, because the store does not answer: some in each iteration of the event loop. */
  admitAll(): void {
    for (let admitted = 0; admitted < this.#max && this.#admitNext(); admitted += 1);
    if (this.#queue.length > 0) setImmediate(() => this.admitAll());
  }

  async #isAdmitted(context: CallContext): Promise<boolean> {
    let admit = (): void => {};
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    const entry: Queued = { admit, state: 'queued' };
    this.#queue.push(entry);
    await context.answerOf(() => admitted, dropped);
    if (context.interruption === undefined) return true;
    // The call may have been admitted in the moment in which its caller gave up.
    if (entry.state === 'admitted') this.leave();
    entry.state = 'gave-up';
    return false;
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
