import { NoAnswerError } from '../backend/time-limit.ts';
import type { Holder, LockBackend, ResourceState } from '../backend/types.ts';
import { CallContext, dropped, INTERRUPTED } from '../call/call-context.ts';
import { type CallDeadlines, DRAINING } from '../call/call-deadlines.ts';
import type { CallLimit } from '../call/call-limit.ts';
import { Failure } from '../call/failure.ts';
import type { ChainMember } from '../errors.ts';
import { readableState } from '../readable-state.ts';
import type { LeaseMonitor } from '../lifetime/lease-monitor.ts';

/** Time limit of a holder query, and how long its answer is reused, in milliseconds: holders are needed for a message only. */
export const HOLDER_QUERY_MS = 100;

/** The holders of a resource, for the message of an acquire that gives up on it. */
export interface HolderQuery {
  /** `undefined` until the store has answered, or where it does not. */
  holders: readonly Holder[] | undefined;
  /** Why there are no holders, once that is known. */
  error: unknown;
  /** Whether a lease of this manager is in the way. */
  readonly isHeldHere: boolean;
  /** Whom the holders wait for themselves, and a sentence on it, once that is known. */
  chain?: readonly ChainMember[];
  chainText?: string;
  answered: Promise<void>;
}

/**
 * Asks the store who holds a resource: once for all waiters of a manager who give up together, and without the queue that they
 * wait in (docs/spec.md §7.6).
 */
export class HolderQueries {
  readonly #backend: LockBackend;
  readonly #deadlines: CallDeadlines;
  readonly #attempts: CallLimit;
  readonly #monitor: LeaseMonitor;
  /** The queries under way, and those answered a moment ago, by resource. */
  readonly #recent = new Map<string, HolderQuery>();

  constructor(backend: LockBackend, deadlines: CallDeadlines, attempts: CallLimit, monitor: LeaseMonitor) {
    this.#backend = backend;
    this.#deadlines = deadlines;
    this.#attempts = attempts;
    this.#monitor = monitor;
  }

  /** Asks the store for the holders of a resource, unless that was done a moment ago. */
  ask(resource: string): HolderQuery {
    let query = this.#recent.get(resource);
    if (query === undefined) {
      const isHeldHere = [...this.#monitor.leases].some(({ grant }) => grant.request.resource === resource);
      query = { holders: undefined, error: undefined, isHeldHere, answered: Promise.resolve() };
      this.#recent.set(resource, query);
      query.answered = this.#answer(resource, query);
    }
    return query;
  }

  async #answer(resource: string, query: HolderQuery): Promise<void> {
    const deadlines = this.#deadlines;
    const now = deadlines.clock.now();
    const latest = Number.POSITIVE_INFINITY;
    const context = new CallContext(deadlines, now + HOLDER_QUERY_MS, undefined, DRAINING, latest, now);
    const ask = async (): Promise<ResourceState> =>
      readableState(await this.#backend.inspect(resource, context, { waiters: false }));
    const state = await this.#attempts.answerOf(context, ask, dropped);
    context.done();
    // Without an answer the message does without the holders, and says why.
    if (state === INTERRUPTED) query.error = new NoAnswerError(HOLDER_QUERY_MS);
    else if (state instanceof Failure) query.error = state.error;
    else query.holders = state.holders;
    deadlines.at(deadlines.clock.now() + HOLDER_QUERY_MS, () => this.#recent.delete(resource));
  }
}
