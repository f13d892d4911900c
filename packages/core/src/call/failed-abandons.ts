import type { AcquireRequest, LockBackend } from '../backend/types.ts';
import type { Protocol } from '../protocol.ts';
import { CallContext, dropped, INTERRUPTED } from './call-context.ts';
import { type CallDeadlines, CLOSED } from './call-deadlines.ts';
import { Failure } from './failure.ts';

/** How often a store that answers no abandon gets another one, in milliseconds. */
const REPEAT_MS = 1_000;
/** The most that are kept: a store that refuses each abandon must not fill the memory. The oldest is forgotten for a newer one. */
const MOST = 10_000;

/**
 * The abandons and releases that failed, in the order of their last failures: an abandon ends a hold, too, and an id is never used again.
 * They are repeated one after the other until the store answered, or, where leases end by their ttl, what they end is over (docs/spec.md
 * §2.5, §2.6): a dead store gets one call a second, however many have failed.
 */
export class FailedAbandons {
  readonly #backend: LockBackend;
  readonly #protocol: Protocol;
  readonly #deadlines: CallDeadlines;
  /** When the repetition of each ends. */
  readonly #ends = new Map<AcquireRequest, number>();

  constructor(backend: LockBackend, protocol: Protocol, deadlines: CallDeadlines) {
    this.#backend = backend;
    this.#protocol = protocol;
    this.#deadlines = deadlines;
  }

  /** @param end - when the store ends by itself what the request may hold */
  add(request: AcquireRequest, end: number): void {
    if (this.#deadlines.hasReached(CLOSED)) return;
    // A session keeps its holds and waiters without regard to the ttl.
    const isOfSession = this.#backend.capabilities.tenure === 'session';
    this.#ends.set(request, isOfSession ? Number.POSITIVE_INFINITY : end);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MOST) this.#ends.delete(oldest as AcquireRequest);
    else if (this.#ends.size === 1) this.#repeatLater();
  }

  #repeatLater(): void {
    this.#deadlines.at(this.#deadlines.clock.now() + REPEAT_MS, () => void this.#repeat());
  }

  async #repeat(): Promise<void> {
    for (const [request, end] of this.#ends) {
      const isOver = this.#deadlines.clock.now() >= end || (await this.#isAnswered(request));
      this.#ends.delete(request);
      if (isOver) continue;
      // It goes to the end: one that the store refuses each time does not keep the others from their repetition.
      this.#ends.set(request, end);
      return this.#repeatLater();
    }
  }

  /** Sends an abandon once. A manager that closes sends none, and no longer waits for the answer. */
  async #isAnswered(request: AcquireRequest): Promise<boolean> {
    const now = this.#deadlines.clock.now();
    const end = now + REPEAT_MS;
    const context = new CallContext(this.#deadlines, end, undefined, CLOSED, Number.POSITIVE_INFINITY, now);
    const answer = await context.answerOf(() => this.#protocol.calls.abandon(request, context), dropped);
    context.done();
    return answer !== INTERRUPTED && !(answer instanceof Failure);
  }
}
