// One file, since whatever ends a lease, a wait or the manager must leave the same sets behind.
import { setTimeout as delay } from 'node:timers/promises';
import { clientClosedError } from './backend/refuse-after-close.ts';
import { NoAnswerError } from './backend/time-limit.ts';
import type {
  AcquireRequest,
  Attempt,
  Call,
  Grant,
  LockBackend,
  LossReason,
  ResourceState,
} from './backend/types.ts';
import { CallContext, dropped, INTERRUPTED } from './call/call-context.ts';
import { CallDeadlines, CLOSED, DRAINING, NEVER } from './call/call-deadlines.ts';
import { CallLimit } from './call/call-limit.ts';
import { FailedAbandons } from './call/failed-abandons.ts';
import { Failure } from './call/failure.ts';
import { ReleaseSender } from './call/release-sender.ts';
import {
  isLockError,
  LockError,
  type LockErrorCode,
  type LockErrorDetails,
  messageOf,
  quote,
} from './errors.ts';
import { identityOf, publish, releasedChannel } from './events.ts';
import { readableState } from './readable-state.ts';
import type { Clock } from './lifetime/clock.ts';
import { type RenewalThread, START } from './lifetime/renewal-thread.ts';
import { identity, LeaseMonitor } from './lifetime/lease-monitor.ts';
import type { LeaseOwner, LeaseState } from './lifetime/lease-state.ts';
import { DEADLOCK_AFTER_MS } from './options.ts';
import { Protocol, shownLease } from './protocol.ts';
import { HolderQueries } from './waiting/holder-query.ts';
import { LocalQueues } from './waiting/local-queues.ts';
import { ProcessKeepAlive } from './waiting/process-keep-alive.ts';

/** The most acquires, and the most abandons of acquires that gave up, in flight at once. */
const ATTEMPTS_AT_ONCE = 256;
const ABANDONS_AT_ONCE = 128;
/** How long `close` waits for a store that answers nothing, in milliseconds (docs/spec.md §12.7). */
const CLOSE_MS = 3_000;
/** The part of that which is left for the backend's own `close`. */
const BACKEND_CLOSE_MS = 1_000;

/** The state that the locks, leases and waits of one manager share. */
export class ManagerCore implements LeaseOwner {
  readonly backend: LockBackend;
  readonly protocol: Protocol;
  readonly clock: Clock;
  readonly monitor: LeaseMonitor;
  readonly deadlines: CallDeadlines;
  /** How long the store may take to answer a call that waits for no lock, in milliseconds. */
  readonly answerMs: number;
  /** How long a wait lasts before circles over several processes are looked for, in milliseconds. */
  readonly deadlockAfterMs: number;
  readonly keepAlive: ProcessKeepAlive;
  readonly localQueues = new LocalQueues();
  readonly attempts = new CallLimit(ATTEMPTS_AT_ONCE);
  readonly holderQueries: HolderQueries;
  readonly #abandons = new CallLimit(ABANDONS_AT_ONCE);
  readonly #failedAbandons: FailedAbandons;
  readonly #releases: ReleaseSender;
  /** The ids whose abandon has no answer yet. */
  readonly #abandoning = new Set<string>();
  #closing: Promise<void> | undefined;
  #endDrain: (() => void) | undefined;
  /** Set once the backend is not called any more (docs/spec.md §12.4). */
  #backendClosed = false;

  constructor(
    given: LockBackend,
    answerMs: number,
    clock: Clock,
    deadlockAfterMs = DEADLOCK_AFTER_MS,
    renewalThread?: RenewalThread,
  ) {
    const { backend = given, Monitor = LeaseMonitor } = renewalThread?.[START](given, clock) ?? {};
    this.backend = backend;
    this.answerMs = answerMs;
    this.deadlockAfterMs = deadlockAfterMs;
    this.clock = clock;
    this.protocol = new Protocol(backend, clock);
    this.monitor = new Monitor(this.protocol, clock);
    this.deadlines = new CallDeadlines(clock);
    this.keepAlive = new ProcessKeepAlive(
      backend.isClientClosed &&
        (() => {
          if (this.#isClientClosed) this.deadlines.interruptUpTo(DRAINING);
        }),
    );
    this.#failedAbandons = new FailedAbandons(backend, this.protocol, this.deadlines);
    this.#releases = new ReleaseSender(backend, this.deadlines, this.isRetryable);
    this.holderQueries = new HolderQueries(backend, this.deadlines, this.attempts, this.monitor);
  }

  get backendName(): string {
    return this.backend.name;
  }

  now(): number {
    return this.clock.now();
  }

  /**
   * Refuses a call from the phase `interruptedFromPhase` on. Calls on a held lease pass `CLOSED`: they stay allowed while draining.
   *
   * @throws LockError `LOCK_CLOSED`
   */
  assertOpen(resource?: string, interruptedFromPhase = DRAINING): void {
    if (this.deadlines.hasReached(interruptedFromPhase)) throw this.closedError(resource);
  }

  /** The error of a caller who is told that the manager, or the client below it, is closed. */
  closedError(resource?: string): LockError {
    if (this.#isClientClosed) return clientClosedError(this.backendName, resource);
    return this.error('LOCK_CLOSED', 'The lock manager is closed.', resource);
  }

  get #isClientClosed(): boolean {
    // A backend that is closed may have closed its client with it.
    return !this.#backendClosed && (this.backend.isClientClosed?.() ?? false);
  }

  error(code: LockErrorCode, message: string, resource?: string, more?: LockErrorDetails): LockError {
    return new LockError(code, message, { ...more, lockName: resource, backend: this.backend.name });
  }

  unsupported(what: string, resource?: string): LockError {
    return this.error(
      'LOCK_UNSUPPORTED',
      `The backend ${this.backend.name} does not support ${what}.`,
      resource,
    );
  }

  /**
   * Wraps an error of the store for users. An error that says little more than that no answer came is explained by the error of
   * the connection.
   */
  backendError(
    doing: string,
    resource: string | undefined,
    cause: unknown,
    request?: AcquireRequest,
  ): LockError {
    if (this.#isClientClosed) return clientClosedError(this.backendName, resource);
    // The check accepts a LockError of any copy of core: the backend may have been built on another one.
    if (isLockError(cause)) return cause;
    const mayBeUnreachable = cause instanceof NoAnswerError || this.isRetryable(cause);
    const unreachable = mayBeUnreachable ? this.backend.connectionError?.(request) : undefined;
    const [what, why] = [messageOf(cause), messageOf(unreachable ?? '')];
    const on = resource === undefined ? '' : ` ${quote(resource)}`;
    const message = `Could not ${doing}${on} on ${this.backend.name}: ${what.includes(why) ? what : `${what}: ${why}`}`;
    return this.error('LOCK_BACKEND', message, resource, { cause: unreachable ?? cause });
  }

  /** The error for a backend that broke its contract. */
  contractError(doing: string, resource: string, what: string): LockError {
    return this.backendError(doing, resource, new Error(`the backend broke its contract: ${what}`));
  }

  readonly isRetryable = (error: unknown): boolean => {
    try {
      return !this.#isClientClosed && this.backend.isRetryable(error);
    } catch {
      return false;
    }
  };

  /**
   * Makes one call with a time limit, and resolves with its answer.
   *
   * @throws LockError `LOCK_BACKEND`, `LOCK_CLOSED`
   */
  async ask<T>(
    doing: string,
    resource: string | undefined,
    send: (call: Call) => T | Promise<T>,
    limitMs = this.answerMs,
    interruptedFromPhase = DRAINING,
  ): Promise<T> {
    this.assertOpen(resource, interruptedFromPhase);
    const now = this.now();
    const latest = Number.POSITIVE_INFINITY;
    const context = new CallContext(
      this.deadlines,
      now + limitMs,
      undefined,
      interruptedFromPhase,
      latest,
      now,
    );
    const answer = await context.answerOf(() => send(context), dropped);
    context.done();
    if (answer instanceof Failure) throw this.backendError(doing, resource, answer.error);
    if (answer !== INTERRUPTED) return answer;
    this.assertOpen(resource, interruptedFromPhase);
    throw this.backendError(doing, resource, new NoAnswerError(limitMs));
  }

  /** Asks, and keeps the process alive until it has the answer: no timer of a long limit does. */
  async askAndStay(
    doing: string,
    send: (call: Call) => Promise<void>,
    limitMs: number,
    interruptedFromPhase?: number,
  ): Promise<void> {
    this.keepAlive.enter();
    await this.ask(doing, undefined, send, limitMs, interruptedFromPhase).finally(() =>
      this.keepAlive.leave(),
    );
  }

  /** Gives the holders and the waiters of a resource, for operators. */
  inspect(resource: string): Promise<ResourceState> {
    const read = this.stateReader();
    return this.ask('inspect', resource, async (call) => read(await this.backend.inspect(resource, call)));
  }

  /**
   * Returns a function that makes readable the states that the store is asked for from now on. It leaves out the waiters of
   * this manager that have given up (docs/spec.md §14.1).
   */
  stateReader(): (state: ResourceState) => ResourceState {
    const gaveUp = new Set(this.#abandoning);
    return (state) => {
      const waiters = state.waiters.filter(
        ({ acquisitionId }) => !gaveUp.has(acquisitionId) && !this.#abandoning.has(acquisitionId),
      );
      return readableState({ ...state, waiters });
    };
  }

  blockedMs(now: number): number {
    return this.monitor.blockedMs(now);
  }

  leaseLost(lease: LeaseState, reason: LossReason): void {
    this.drop(lease, reason);
    lease.onLost?.();
    // A renewal that got no answer may have run, and keep the resource from others for another ttl (docs/spec.md §2.7). A session
    // keeps a hold whose `maxHoldMs` is over until the session ends (docs/spec.md §4.2).
    const endsInSession = reason === 'expired' && lease.grant.session !== undefined;
    if (reason === 'unconfirmed' || endsInSession) this.abandon(lease.grant.request);
    publish('locks:lost', { ...identity(lease), heldMs: this.now() - lease.grantedAt, reason });
  }

  /** Ends the monitoring of a lease. */
  drop(lease: LeaseState, why: LossReason | 'released' | 'transferred' | 'useless', now?: number): void {
    if (this.monitor.remove(lease, why, now) && this.protocol.isHeard)
      this.protocol.tell({ step: 'ends', acquisition: shownLease(lease.grant), why, until: lease.deadline });
    if (this.monitor.leases.size === 0) this.#endDrain?.();
  }

  /**
   * Releases a lease at the store. Nothing renews it from here on: monitoring ends before this returns (docs/spec.md §4.1).
   *
   * @throws LockError `LOCK_LOST` if the lease was lost before, `LOCK_BACKEND` if the store gave no answer
   */
  release(lease: LeaseState): Promise<void> {
    const now = this.now();
    const lost = lease.lostAt(now);
    lease.released = true;
    this.drop(lease, 'released', now);
    if (lost !== undefined) return Promise.reject(lost);
    return this.#releases.send(
      (call) => this.protocol.calls.release(lease.grant, call),
      (answer, sendings) => this.#released(lease, answer, sendings, now),
      now,
      lease.keptUntil,
    );
  }

  /** Makes an id neither hold nor wait, in the background. */
  abandon(request: AcquireRequest): void {
    void this.#abandon(request);
  }

  /** Abandons the id of a waiter that gave up, once the limit admits it: thousands may give up at once. */
  abandonWhenAdmitted(request: AcquireRequest): void {
    this.#releases.enter();
    this.#abandoning.add(request.acquisitionId);
    void this.#abandons.whenAdmitted(async () => {
      // After an abandon without an answer the others are admitted at once: each would wait for as long.
      if (!(await this.#abandon(request))) this.#abandons.admitAll();
      this.#releases.leave();
    });
  }

  /** Sends an abandon until it is answered; resolves with whether the store answered. */
  #abandon(request: AcquireRequest): Promise<boolean> {
    this.#abandoning.add(request.acquisitionId);
    const conclude = (answer: void | Failure): boolean => {
      this.#abandoning.delete(request.acquisitionId);
      const failed = answer instanceof Failure;
      if (failed) {
        const { error } = answer;
        publish('locks:abandon-failed', { ...identityOf(request, this.backendName), error });
        this.#failedAbandons.add(request, this.now() + request.ttlMs);
      }
      return !failed;
    };
    // A grant that comes after the backend was closed ends by its ttl: a backend may have to open again what it closed.
    if (this.#backendClosed)
      return Promise.resolve(conclude(new Failure(this.closedError(request.resource))));
    const send = (call: Call): Promise<void> => this.protocol.calls.abandon(request, call);
    return this.#releases.send(send, conclude, this.now(), Number.POSITIVE_INFINITY);
  }

  #released(
    lease: LeaseState,
    answer: 'released' | 'not-held' | 'unknown' | Failure,
    sendings: number,
    sentAt: number,
  ): void {
    const { resource } = lease.grant.request;
    if (answer instanceof Failure)
      throw this.#releaseFailed(lease, this.backendError('release', resource, answer.error));
    this.localQueues.released(resource);
    switch (answer) {
      case 'not-held':
        // After an unanswered sending, `not-held` means that the earlier sending released the lease (docs/spec.md §2.4).
        if (sendings === 1)
          throw lease.foundLost(this.now() >= lease.deadline ? lease.endByTime : 'force-released');
        break;
      case 'released':
      case 'unknown':
        break;
      default:
        answer satisfies never;
        throw this.#releaseFailed(lease, this.contractError('release', resource, 'no answer'));
    }
    this.#publishReleased(lease, sentAt);
  }

  /**
   * Gives the hold of a lease to the id of a ticket, in one step of the store. Nothing renews or releases the lease from here on.
   *
   * @throws LockError `LOCK_LOST` if the store no longer had it, `LOCK_BACKEND` if it gave no answer: both ids are abandoned then
   */
  transfer(lease: LeaseState, request: AcquireRequest): Promise<Grant> {
    const now = this.now();
    lease.released = true;
    this.drop(lease, 'transferred');
    const conclude = (answer: Attempt | Failure): Grant => {
      if (answer instanceof Failure) {
        // The former id first: a request that arrives late then finds nothing to take over.
        this.abandon(lease.grant.request);
        this.abandon(request);
        throw this.backendError('transfer', request.resource, answer.error);
      }
      if (answer.status !== 'granted')
        throw lease.foundLost(this.now() >= lease.deadline ? 'expired' : 'force-released');
      this.#publishReleased(lease, now);
      return answer.grant;
    };
    const send = (call: Call): Promise<Attempt> => this.protocol.calls.attempt(request, false, call);
    return this.#releases.send(send, conclude, now, lease.deadline);
  }

  #publishReleased(lease: LeaseState, sentAt: number): void {
    if (!releasedChannel.hasSubscribers) return;
    const now = this.now();
    const [heldMs, tookMs] = [now - lease.grantedAt, now - sentAt];
    publish('locks:released', { ...identity(lease), heldMs, tookMs, ...lease.shareLeft(sentAt) });
  }

  /** Reports a release that got no answer, and repeats it in the background until the lease's end (docs/spec.md §2.5). */
  #releaseFailed(lease: LeaseState, error: LockError): LockError {
    publish('locks:release-failed', { ...identity(lease), error });
    this.#failedAbandons.add(lease.grant.request, lease.deadline);
    return error;
  }

  /**
   * Ends waits, lets leases go on for up to `drainMs`, then ends and abandons those that are left, and closes the backend. A
   * second call with 0 ends the time that the first one gave.
   */
  close(drainMs: number): Promise<void> {
    if (drainMs === 0) this.#endDrain?.();
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    const interruptWaits = this.deadlines.enter(drainMs > 0 ? DRAINING : CLOSED);
    // `#closing` is assigned before anybody is interrupted: their code must find the manager closing.
    await Promise.resolve();
    interruptWaits();
    if (drainMs > 0) await this.#drain(drainMs);
    for (const lease of [...this.monitor.leases]) {
      lease.lose('closed');
      this.abandon(lease.grant.request);
    }
    // Callers whose waits were interrupted send their abandons in the microtasks that follow.
    await delay(0);
    this.keepAlive.enter();
    const isAnswering = await this.#releases.settle(CLOSE_MS - BACKEND_CLOSE_MS);
    this.keepAlive.leave();
    this.#backendClosed = true;
    if (this.protocol.isHeard) this.protocol.tell({ step: 'closes' });
    if (!isAnswering) await this.#releases.reportSilence();
    this.monitor.stop();
    const limitMs = isAnswering ? CLOSE_MS : BACKEND_CLOSE_MS;
    await this.askAndStay('close', () => this.backend.close(), limitMs, NEVER).finally(() =>
      this.deadlines.stop(),
    );
  }

  /** Waits until nothing is held, the time is over, or a second call of `close` gives none (docs/spec.md §12.5). */
  async #drain(drainMs: number): Promise<void> {
    const drained = new Promise<void>((resolve) => {
      this.#endDrain = resolve;
      if (this.monitor.leases.size === 0) resolve();
    });
    // Leases that are held when the time is over end in the next step.
    await this.askAndStay('drain', () => drained, drainMs, NEVER).catch(() => {});
    this.deadlines.enter(CLOSED)();
  }
}
