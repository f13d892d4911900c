import { setTimeout as delay } from 'node:timers/promises';
import { INTERRUPTED, Patience } from './acquire/patience.ts';
import { Patiences } from './acquire/patiences.ts';
import type { AcquireRequest, Call, LockBackend, LossReason } from './backend/types.ts';
import { LockError } from './errors.ts';
import { publish, releasedIsWatched } from './events.ts';
import { CombinedClock, type Clock } from './tenure/clock.ts';
import type { Hold, HoldOwner } from './tenure/hold.ts';
import { identity, Keeper, publishLoss } from './tenure/keeper.ts';
import { KeepAlive } from './tenure/keep-alive.ts';

/** A release or an abandon that gets no answer is repeated for this long (docs/spec.md §2.5). */
const SETTLE_MS = 1_000;
/** One sending of it is given up after this, and sent again. */
const RESEND_MS = 350;
const BACKOFF_MS = 20;

/** What the locks, leases and waits of one manager share. */
export class Engine implements HoldOwner {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly keeper: Keeper;
  readonly patiences: Patiences;
  readonly keepAlive = new KeepAlive();
  /** Background work that `close` waits for. */
  readonly #chores = new Set<Promise<void>>();
  /** Releases under way, which it waits for too. Counted: a chore for each would cost every release. */
  #releasing = 0;
  #allReleased: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(backend: LockBackend, clock: Clock = new CombinedClock()) {
    this.backend = backend;
    this.clock = clock;
    this.keeper = new Keeper(backend, clock);
    this.patiences = new Patiences(clock);
  }

  get backendName(): string {
    return this.backend.name;
  }

  now(): number {
    return this.clock.now();
  }

  assertOpen(resource?: string): void {
    if (this.#closing !== undefined) throw this.error('LOCK_CLOSED', 'The lock manager is closed.', { resource });
  }

  error(
    code: ConstructorParameters<typeof LockError>[0],
    message: string,
    details: { resource?: string | undefined; cause?: unknown; reason?: LossReason } = {},
  ): LockError {
    const { resource, ...rest } = details;
    return new LockError(code, message, {
      ...rest,
      ...(resource === undefined ? undefined : { resource }),
      backend: this.backend.name,
    });
  }

  /** An error of the store as users see it. */
  backendError(doing: string, resource: string | undefined, cause: unknown): LockError {
    if (cause instanceof LockError) return cause;
    const what = cause instanceof Error ? cause.message : String(cause);
    const on = resource === undefined ? '' : ` ${JSON.stringify(resource)}`;
    return this.error('LOCK_BACKEND', `Could not ${doing}${on} on ${this.backend.name}: ${what}`, { resource, cause });
  }

  isRetryable(error: unknown): boolean {
    try {
      return this.backend.isRetryable(error);
    } catch {
      return false;
    }
  }

  holdLost(hold: Hold, reason: LossReason): void {
    this.#drop(hold);
    hold.scope?.closeToEntries();
    publishLoss(hold, reason, this.now());
  }

  /** One call with a time limit, its failure told as `LOCK_BACKEND`. */
  async ask<T>(doing: string, resource: string | undefined, limitMs: number, call: (call: Call) => Promise<T>): Promise<T> {
    this.assertOpen(resource);
    const patience = new Patience(this.patiences, this.now() + limitMs);
    try {
      const answer = await patience.guard(call(patience));
      if (answer !== INTERRUPTED) return answer;
    } catch (error) {
      throw this.backendError(doing, resource, error);
    } finally {
      patience.done();
    }
    this.assertOpen(resource);
    throw this.backendError(doing, resource, new Error(`no answer within ${limitMs} ms`));
  }

  /**
   * Gives a hold back to the store. From the first, synchronous line on nothing renews it.
   *
   * @throws LockError `LOCK_LOST` if the store had lost it before, `LOCK_BACKEND` if the store gave no answer
   */
  async release(hold: Hold): Promise<void> {
    const now = this.now();
    const lost = hold.lostAt(now);
    hold.released = true;
    this.#drop(hold);
    if (lost !== undefined) throw lost;
    const { deadline } = hold;
    const giveUpAt = Math.min(deadline, now + SETTLE_MS);
    this.#releasing += 1;
    const sent = await this.#settle((call) => this.backend.release(hold.grant, call), now, giveUpAt);
    this.#releasing -= 1;
    if (this.#releasing === 0) this.#allReleased?.();
    if (!sent.answered) throw this.backendError('release', hold.grant.request.resource, sent.error);
    if (sent.answer !== 'released' && sent.answer !== 'not-held' && sent.answer !== 'unknown') {
      throw this.backendError('release', hold.grant.request.resource, new Error('the backend broke its contract: no answer'));
    }
    // After an unanswered sending "not held" means that the earlier one released it (docs/spec.md §2.4).
    if (sent.answer === 'not-held' && sent.sendings === 1) {
      throw hold.foundLost(this.now() >= deadline ? 'expired' : 'force-released');
    }
    if (releasedIsWatched()) publish('locks:released', { ...identity(hold), heldMs: this.now() - hold.grantedAt });
  }

  /** In the background: afterwards the id neither holds nor waits, or ends by itself within its ttl. */
  abandon(request: AcquireRequest): void {
    const now = this.now();
    const abandoned = this.#settle((call) => this.backend.abandon(request, call), now, now + SETTLE_MS);
    const chore = abandoned.then((sent) => {
      this.#chores.delete(chore);
      if (sent.answered) return;
      const { resource, acquisitionId } = request;
      publish('locks:abandon-failed', { resource, backend: this.backendName, acquisitionId, error: sent.error });
    });
    this.#chores.add(chore);
  }

  /** Ends waits, gives back what is held, tells its holders, and closes the backend. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Assigned before anything is told: who is told must find the manager closed.
    await Promise.resolve();
    this.patiences.interruptCallers('closed');
    for (const hold of [...this.keeper.holds]) {
      hold.lose('closed');
      this.abandon(hold.grant.request);
    }
    // Callers whose waits were interrupted send their abandons in the microtasks that follow.
    await delay(0);
    await Promise.all(this.#chores);
    if (this.#releasing > 0) await new Promise<void>((resolve) => (this.#allReleased = resolve));
    this.keeper.stop();
    this.patiences.stop();
    try {
      await this.backend.close();
    } catch (error) {
      throw this.backendError('close', undefined, error);
    }
  }

  #drop(hold: Hold): void {
    this.keeper.remove(hold);
    hold.unfollow?.();
  }

  /** Sends a call that may be repeated until it is answered, or until `giveUpAt`. */
  async #settle<T>(send: (call: Call) => Promise<T>, startedAt: number, giveUpAt: number): Promise<Settled<T>> {
    for (let sendings = 1, now = startedAt; ; sendings += 1, now = this.now()) {
      const patience = new Patience(this.patiences, Math.min(giveUpAt, now + RESEND_MS), undefined, true);
      let error: unknown;
      try {
        const answer = await patience.guard(send(patience));
        if (answer !== INTERRUPTED) return { answered: true, answer, sendings };
        error = new Error('the store did not answer in time');
      } catch (failure) {
        error = failure;
        if (!this.isRetryable(error)) return { answered: false, error };
      } finally {
        patience.done();
      }
      if (this.now() + BACKOFF_MS >= giveUpAt) return { answered: false, error };
      await delay(BACKOFF_MS * sendings);
    }
  }
}

type Settled<T> =
  | { readonly answered: true; readonly answer: T; readonly sendings: number }
  | { readonly answered: false; readonly error: unknown };
