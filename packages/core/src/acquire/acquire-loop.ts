// One file, since each step of the loop depends on what the one before it may have left in the store.
import { setTimeout as delay } from 'node:timers/promises';
import { NoAnswerError } from '../backend/time-limit.ts';
import type { AcquireRequest, Attempt, Grant, LockMode } from '../backend/types.ts';
import { CallContext, dropped, INTERRUPTED } from '../call/call-context.ts';
import { DRAINING } from '../call/call-deadlines.ts';
import { Failure } from '../call/failure.ts';
import { describe } from '../errors.ts';
import { acquiredChannel, contendedChannel, identityOf, type LockEvent, publish } from '../events.ts';
import type { ManagerCore } from '../manager-core.ts';
import { attemptLimitMs, type ResolvedOptions } from '../options.ts';
import type { LeaseState, Validity } from '../lifetime/lease-state.ts';
import { shown } from '../protocol.ts';
import { currentFrame } from '../scope/context.ts';
import { circleOf, enterLeaseWait } from '../scope/lease-waits.ts';
import { HOLDER_QUERY_MS, type HolderQuery } from '../waiting/holder-query.ts';
import type { LocalTicket } from '../waiting/local-queues.ts';
import { freshAcquisitionId } from './acquisition-id.ts';
import { isAged, renewAged } from './aged-grant.ts';
import { circleError } from './circle-error.ts';
import { explainWait, whenLong } from './long-wait.ts';
import { queueFullError } from './queue-full-error.ts';
import { conflictError } from './conflict-error.ts';
import { interruptionFromOutside } from './interruption-error.ts';
import { timeoutError } from './timeout-error.ts';
import { grantFault } from '../backend/grant-fault.ts';

/** Poll interval for a backend that says neither when to retry nor when it is our turn. */
const DEFAULT_RETRY_MS = 50;
const FIRST_BACKOFF_MS = 20;
const LONGEST_BACKOFF_MS = 1_000;
/** Hints that come faster than this without a grant are slowed down: no store is polled in a tight loop. */
const MIN_RETRY_MS = 2;
/** Error message for an abandoned grant. */
export const USELESS_GRANT = 'the grant arrived lost, or when its time was over';

const ATTEMPT = Symbol('attempt');
/** The next step of the loop: an attempt, or the reaction to an answer of the backend. */
type Step = typeof ATTEMPT | typeof INTERRUPTED | Failure | Attempt;

/**
 * One acquire: the only wait loop there is. It ends with a lease, or abandons its acquisition id and throws.
 *
 * ```
 *   local queue ──▶ attempt ◀──────────── hint, or time to poll ────────────┐
 *   (if the store      │ ▲                                                  │
 *    keeps none)       │ └──────── back off ◀──┬── failed ◀──┐              │
 *                      │                       │             │              │
 *                      ├── failed ─────────────┤             │              │
 *                      ├── contended ──────────│──────▶ await the turn ─────┘
 *                      │                       │             │
 *                      └── granted ──▶ accept ◀│── granted ──┘  (hand-off)
 *                                        │     │
 *                         a lease ◀──────┴─────┘ of no use: abandoned, with a fresh id
 * ```
 *
 * A conflict, an error that cannot be repeated, the deadline, an abort and the end of the manager leave it from every state.
 */
export class AcquireLoop {
  readonly #core: ManagerCore;
  readonly #options: ResolvedOptions;
  readonly #call: CallContext;
  readonly #startedAt: number;
  /** Whether the acquire waits; if not, it makes a single attempt. */
  readonly #enqueue: boolean;
  readonly #storeHasQueue: boolean;
  readonly #usesLocalQueue: boolean;
  #request: AcquireRequest;
  /** Whether an attempt was sent with the present acquisition id. */
  #sent = false;
  /** The id with which the acquire found the resource contended. */
  #contendedAs: string | undefined;
  #lastError: unknown;
  /** Failures in a row: each makes the pause longer. */
  #failures = 0;
  /** Hints in a row that came too fast. */
  #fastHints = 0;
  /** The place among the waiters of this process, where the store keeps no queue. */
  #ticket: LocalTicket | undefined;
  #holderQuery: HolderQuery | undefined;
  #cancelHolderQuery: (() => void) | undefined;
  #endLeaseWait: (() => void) | undefined;
  /** The wait at the store. */
  #turnWait: CallContext | undefined;
  /** The error of a wait that gave up for others. */
  #deadlock: unknown;

  constructor(
    core: ManagerCore,
    resource: string,
    mode: LockMode,
    options: ResolvedOptions,
    startedAt: number,
    enqueue: boolean,
  ) {
    const { ttlMs, waitMs, label, signal } = options;
    this.#core = core;
    this.#options = options;
    this.#startedAt = startedAt;
    this.#enqueue = enqueue;
    this.#storeHasQueue = core.backend.capabilities.order !== 'none';
    this.#usesLocalQueue = this.#enqueue && !this.#storeHasQueue && !options.steal;
    const limitMs = enqueue ? waitMs : attemptLimitMs(core.answerMs, ttlMs);
    this.#call = new CallContext(
      core.deadlines,
      startedAt + limitMs,
      signal,
      DRAINING,
      Number.POSITIVE_INFINITY,
      startedAt,
    );
    const request = { resource, acquisitionId: freshAcquisitionId(), label, mode, ttlMs };
    this.#request = {
      ...request,
      ...(options.steal && { steal: true }),
      ...(options.adopts !== undefined && { adopts: options.adopts }),
      ...(options.maxWaiters !== undefined && { maxWaiters: options.maxWaiters }),
    };
  }

  /**
   * Runs the loop. Resolves with the lease, or with `undefined` when a single attempt found the resource contended.
   *
   * @throws LockError `LOCK_TIMEOUT`, `LOCK_BACKEND`, `LOCK_CLOSED`, `LOCK_CONFLICT`, or the reason of the caller's signal
   */
  async run(): Promise<LeaseState | undefined> {
    const { attempts } = this.#core;
    try {
      // The caller may have aborted, or the manager closed, before the loop began.
      if (this.#call.interruption !== undefined) throw this.#reason();
      let step: Step = ATTEMPT;
      // Waiters of this process that came earlier attempt first.
      if (this.#usesLocalQueue && this.#core.localQueues.has(this.#request.resource))
        step = await this.#wait(undefined);
      for (;;) {
        // An interruption wins over a grant of the same moment: the caller was told to stop, so it does not hold.
        if (step === INTERRUPTED || this.#call.interruption !== undefined)
          throw this.#abandonAndMakeError(this.#reason());
        if (step === ATTEMPT) {
          const admitted = attempts.enter(this.#call);
          if (admitted !== true && !(await admitted)) throw this.#abandonAndMakeError(this.#reason());
          try {
            step = await this.#attempt();
          } finally {
            attempts.leave();
          }
          continue;
        }
        switch (step?.status) {
          case 'granted': {
            const { grant }: { grant: Grant } = step;
            const hasWaited = this.#contendedAs !== undefined;
            const aged = isAged(this.#core, grant, this.#options.ttlMs, hasWaited);
            const lease = aged ? await this.#renewAndAccept(grant, hasWaited) : this.#accept(grant, grant);
            if (lease !== undefined) return lease;
            this.#abandonUseless();
            step = await this.#wait(() => this.#backOff());
            break;
          }
          case 'contended': {
            this.#lastError = undefined;
            this.#failures = 0;
            this.#foundContended();
            // An adoption waits for an answer of the store, and never in the queue.
            if (!this.#enqueue || this.#options.adopts !== undefined) return undefined;
            const { retryAfterMs } = step;
            step = await this.#wait(() => this.#awaitTurn(retryAfterMs));
            break;
          }
          case 'failed':
            this.#failed(step.error);
            step = await this.#wait(() => this.#backOff());
            break;
          case 'full': {
            // Where every attempt was answered, the store knows nothing of this id.
            if (this.#failures === 0 && this.#contendedAs === undefined) this.#sent = false;
            throw this.#abandonAndMakeError(queueFullError(this.#core, this.#request, step.because));
          }
          case 'conflict':
            // A conflict is final also after a wait: the limit that this id queued for was known at that time.
            throw this.#abandonAndMakeError(conflictError(this.#core, this.#request, step.with));
          default:
            step satisfies never;
            throw this.#brokenContract(
              `an attempt answered ${describe((step as Partial<Attempt> | null)?.status)}`,
            );
        }
      }
    } finally {
      this.#call.done();
      this.#ticket?.leave();
      this.#cancelHolderQuery?.();
      this.#endLeaseWait?.();
    }
  }

  #attempt(): Promise<Step> {
    const { protocol } = this.#core;
    if (this.#sent && !this.#storeHasQueue) {
      // An abandon of the last attempt may reach the store after the next attempt (docs/spec.md §2.2): each has its own id.
      if (this.#failures > 0) this.#core.abandon(this.#request);
      this.#renewId();
    }
    const request = this.#request;
    const send = (): Promise<Attempt> => {
      this.#sent = true;
      return protocol.calls.attempt(request, this.#enqueue && request.adopts === undefined, this.#call);
    };
    return this.#call.answerOf<Attempt>(send, (late) => {
      // The id was abandoned already, perhaps before this attempt reached the store (docs/spec.md §2.2).
      if (this.#enqueue || late?.status === 'granted') this.#core.abandon(request);
    });
  }

  /** Turns a grant into a lease; `undefined` where the grant is of no use. */
  #accept(grant: Grant, validity: Validity): LeaseState | undefined {
    const core = this.#core;
    const now = core.clock.now();
    const fault = grantFault(grant, this.#request.acquisitionId, core.backend.capabilities, now);
    if (fault !== undefined) throw this.#brokenContract(fault);
    const lease = core.monitor.start(core, grant, this.#options, now, validity);
    if (lease !== undefined && acquiredChannel.hasSubscribers) {
      const { fencingToken } = grant;
      publish('locks:acquired', { ...this.#identity(), ...this.#waited(now), fencingToken });
    }
    return lease;
  }

  /** Abandons a grant that arrived expired or lost: such a lease is never delivered (docs/spec.md §1.4). */
  #abandonUseless(): void {
    const { resource } = this.#request;
    this.#core.abandon(this.#request);
    this.#lastError = new Error(USELESS_GRANT);
    this.#failures += 1;
    if (!this.#enqueue) throw this.#core.backendError('acquire', resource, this.#lastError);
    this.#renewId();
  }

  /** Renews an aged lease before it is delivered. */
  async #renewAndAccept(grant: Grant, hasWaited: boolean): Promise<LeaseState | undefined> {
    const { ttlMs } = this.#options;
    const validities = await renewAged(this.#core, [{ grant, ttlMs }], this.#call, hasWaited);
    if (this.#call.interruption !== undefined) throw this.#abandonAndMakeError(this.#reason());
    return validities && this.#accept(grant, validities[0] ?? grant);
  }

  /** Waits for the turn among the waiters of this process, where the store keeps no queue; then calls `wait`. */
  async #wait(wait: (() => Promise<Step>) | undefined): Promise<Step> {
    const { keepAlive, localQueues } = this.#core;
    keepAlive.enter();
    try {
      if (this.#usesLocalQueue && this.#ticket === undefined) {
        const ticket = localQueues.join(this.#request.resource);
        this.#ticket = ticket;
        if (!ticket.isFirst) {
          this.#foundContended();
          await this.#call.answerOf(() => ticket.turn, dropped);
          return ATTEMPT;
        }
      }
      return wait === undefined ? ATTEMPT : await wait();
    } finally {
      keepAlive.leave();
    }
  }

  /** Waits at the store for a grant or a hint, or until it is time to poll. */
  async #awaitTurn(retryAfterMs: number | undefined): Promise<Step> {
    const { backend, protocol, deadlines, clock } = this.#core;
    const pollMs = jittered(Math.max(retryAfterMs ?? DEFAULT_RETRY_MS, MIN_RETRY_MS));
    if (backend.awaitTurn === undefined) return this.#pause(pollMs);
    const startedAt = clock.now();
    const pollAt = retryAfterMs === undefined ? Number.POSITIVE_INFINITY : startedAt + pollMs;
    const request = this.#request;
    // The wait has a call of its own: the backend must stop waiting also when only the next poll is due, which is no verdict.
    const { deadline, userSignal } = this.#call;
    const endsAt = Math.min(deadline, pollAt);
    const wait = new CallContext(deadlines, endsAt, userSignal, DRAINING, pollAt, startedAt);
    this.#turnWait = wait;
    const answer = await wait.answerOf(
      () => protocol.calls.awaitTurn?.(request, wait),
      (late) => {
        // Nobody waits for this id any more: it must not hold (docs/spec.md §2.3).
        const isOver = this.#call.interruption !== undefined || request !== this.#request;
        if (late !== undefined && isOver) this.#core.abandon(request);
      },
    );
    const { interruption } = wait;
    wait.done();
    if (answer === INTERRUPTED) {
      // The deadlines of both calls may come in the same moment, in either order.
      if (interruption !== undefined && (interruption !== 'deadline' || pollAt >= deadline))
        this.#call.interrupt(interruption);
      return ATTEMPT;
    }
    if (answer instanceof Failure) return answer;
    if (answer !== undefined) return { status: 'granted', grant: answer };
    this.#fastHints = clock.now() - startedAt < MIN_RETRY_MS ? this.#fastHints + 1 : 0;
    return this.#fastHints <= 2 ? ATTEMPT : this.#pause(Math.min(this.#fastHints, 2 * DEFAULT_RETRY_MS));
  }

  /** Pauses for a backoff that grows with the number of failures in a row. */
  #backOff(): Promise<Step> {
    const ms = FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures - 1, 10);
    return this.#pause(jittered(Math.min(ms, LONGEST_BACKOFF_MS)));
  }

  /** Pauses for `ms` milliseconds; a release in this process cuts the pause short. */
  async #pause(ms: number): Promise<Step> {
    const ticket = this.#ticket;
    if (ticket?.missedWake) {
      ticket.missedWake = false;
      return ATTEMPT;
    }
    const cancel = new AbortController();
    if (ticket !== undefined) ticket.wake = () => cancel.abort();
    await this.#call.answerOf(() => delay(ms, undefined, { signal: cancel.signal }), dropped);
    if (ticket !== undefined) ticket.wake = undefined;
    cancel.abort();
    return ATTEMPT;
  }

  #foundContended(): void {
    if (this.#contendedAs !== undefined) return;
    const { deadlines, holderQueries } = this.#core;
    const { resource, acquisitionId } = this.#request;
    this.#contendedAs = acquisitionId;
    this.#refuseToCloseCircle();
    const { deadline } = this.#call;
    if (this.#enqueue && deadline !== Number.POSITIVE_INFINITY) {
      // The query is sent shortly before the deadline, so that it does not prolong the wait.
      const askAt = deadline - Math.min(HOLDER_QUERY_MS, (deadline - this.#startedAt) / 2);
      this.#cancelHolderQuery = deadlines.at(askAt, () => {
        this.#holderQuery = holderQueries.ask(resource);
        explainWait(this.#core, resource, this.#holderQuery, this.#startedAt);
      });
    }
    if (!contendedChannel.hasSubscribers) return;
    const lookUpHolders = async () => {
      const query = holderQueries.ask(resource);
      await query.answered;
      return query.holders;
    };
    const { waitedMs } = this.#waited();
    publish('locks:contended', { ...this.#identity(), waitedMs, waits: this.#enqueue, lookUpHolders });
  }

  /** Refuses a wait that cannot end before the waiting code has: alone, or in a circle with other waits of this process. */
  #refuseToCloseCircle(): void {
    const { resource, mode, adopts } = this.#request;
    if (!this.#enqueue || adopts !== undefined) return;
    const request = { owner: this.#core, resource, mode };
    const circle = circleOf(request);
    if (circle !== undefined)
      throw this.#abandonAndMakeError(circleError(this.#core, resource, mode, circle));
    const frame = currentFrame();
    if (frame === undefined) return;
    const endRecord = enterLeaseWait(request, frame);
    const giveUp = (error: unknown): void => this.#endAsDeadlock(error);
    const { acquisitionId } = this.#request;
    const endWatch = whenLong({ core: this.#core, resource, mode, acquisitionId, frame, giveUp });
    this.#endLeaseWait = () => {
      endRecord();
      endWatch();
    };
  }

  /** Ends the wait, which is the youngest of a circle over several processes (docs/spec.md §5.10). */
  #endAsDeadlock(error: unknown): void {
    this.#deadlock = error;
    this.#turnWait?.interrupt('aborted');
    this.#call.interrupt('aborted');
  }

  /** Takes a fresh acquisition id: a given-up id is never used again (docs/spec.md §2.2). */
  #renewId(): void {
    this.#request = { ...this.#request, acquisitionId: freshAcquisitionId() };
    this.#sent = false;
  }

  /** Records a failure; throws where the attempt cannot be repeated. */
  #failed(error: unknown): void {
    this.#lastError = error;
    this.#failures += 1;
    if (this.#enqueue && this.#core.isRetryable(error)) return;
    // The store may have executed the failed call (docs/spec.md §2.2).
    throw this.#abandonAndMakeError(
      this.#core.backendError('acquire', this.#request.resource, error, this.#request),
    );
  }

  /** Abandons the acquisition, so that nothing is left behind, and returns the error for the caller. */
  #abandonAndMakeError(error: unknown): unknown {
    const { protocol } = this.#core;
    if (this.#sent && protocol.isHeard)
      protocol.tell({ step: 'gives-up', acquisition: shown(this.#request) });
    if (this.#sent) this.#core.abandonWhenAdmitted(this.#request);
    const { holders, chain } = this.#holderQuery ?? {};
    publish('locks:gave-up', { ...this.#identity(), ...this.#waited(), error, holders, chain });
    return error;
  }

  #reason(): unknown {
    if (this.#deadlock !== undefined) return this.#deadlock;
    const core = this.#core;
    const { resource } = this.#request;
    const { waitedMs, contendedAs } = this.#waited();
    const outside = interruptionFromOutside(core, resource, this.#call);
    if (outside !== undefined) return outside.reason;
    // A wait at a store that the client has lost would not have ended with the turn (docs/spec.md §7.5).
    const lastError = this.#lastError ?? core.backend.connectionError?.(this.#request);
    if (contendedAs !== undefined && lastError === undefined)
      return timeoutError(core, resource, waitedMs, this.#holderQuery, this.#options);
    const error = this.#lastError ?? new NoAnswerError(waitedMs);
    return core.backendError('acquire', resource, error, this.#request);
  }

  #brokenContract(what: string): unknown {
    return this.#abandonAndMakeError(this.#core.contractError('acquire', this.#request.resource, what));
  }

  #waited(now = this.#core.clock.now()): { waitedMs: number; contendedAs: string | undefined } {
    return { waitedMs: now - this.#startedAt, contendedAs: this.#contendedAs };
  }

  #identity(): LockEvent {
    return identityOf(this.#request, this.#core.backendName);
  }
}

/** Shortens a pause at random by up to a fifth: processes that were refused together do not come back together. */
function jittered(ms: number): number {
  return ms * (1 - Math.random() / 5);
}
