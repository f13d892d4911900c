import { setTimeout as delay } from 'node:timers/promises';
import { Lines } from './acquire/lines.ts';
import { INTERRUPTED, Patience } from './acquire/patience.ts';
import { Patiences } from './acquire/patiences.ts';
import type { AcquireRequest, Call, LockBackend, LossReason } from './backend/types.ts';
import { isLockError, LockError, type LockErrorCode, type LockErrorDetails, quote } from './errors.ts';
import { publish, releasedIsWatched } from './events.ts';
import { CombinedClock, type Clock } from './tenure/clock.ts';
import type { Hold, HoldOwner } from './tenure/hold.ts';
import { identity, Keeper, publishLoss } from './tenure/keeper.ts';
import { KeepAlive } from './tenure/keep-alive.ts';

/** A release or an abandon that gets no answer is repeated for this long (docs/spec.md §2.5). */
const SETTLE_MS = 1_000;
/** After this it is sent once more, and whichever sending is answered first counts. */
const RESEND_MS = 350;
const BACKOFF_MS = 20;
/** A backend that does not come to its end is left alone after this. */
const CLOSE_MS = 10_000;

/** What the locks, leases and waits of one manager share. */
export class Engine implements HoldOwner {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly keeper: Keeper;
  readonly patiences: Patiences;
  readonly keepAlive = new KeepAlive();
  readonly lines = new Lines();
  /** Releases and abandons under way: `close` waits for them. */
  #settling = 0;
  #allSettled: (() => void) | undefined;
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
    if (this.#closing !== undefined) throw this.error('LOCK_CLOSED', 'The lock manager is closed.', resource);
  }

  error(code: LockErrorCode, message: string, resource?: string, more?: LockErrorDetails): LockError {
    return new LockError(code, message, {
      ...more,
      ...(resource === undefined ? undefined : { resource }),
      backend: this.backend.name,
    });
  }

  unsupported(what: string, resource?: string): LockError {
    return this.error(
      'LOCK_UNSUPPORTED',
      `The backend ${this.backend.name} does not support ${what}.`,
      resource,
    );
  }

  /** An error of the store as users see it. */
  backendError(doing: string, resource: string | undefined, cause: unknown): LockError {
    // Of any copy of core: the backend may have been built on another one.
    if (isLockError(cause)) return cause;
    const what = cause instanceof Error ? cause.message : String(cause);
    const on = resource === undefined ? '' : ` ${quote(resource)}`;
    const message = `Could not ${doing}${on} on ${this.backend.name}: ${what}`;
    return this.error('LOCK_BACKEND', message, resource, { cause });
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
    // A renewal that got no answer may have run, and keep the resource from others for another ttl (docs/spec.md §2.7).
    if (reason === 'unconfirmed') this.abandon(hold.grant.request);
    publishLoss(hold, reason, this.now());
  }

  /** One call with a time limit, its failure told as `LOCK_BACKEND`. */
  async ask<T>(
    doing: string,
    resource: string | undefined,
    limitMs: number,
    call: (call: Call) => Promise<T>,
  ): Promise<T> {
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
    throw this.backendError(doing, resource, noAnswerWithin(limitMs));
  }

  /**
   * Gives a hold back to the store. Nothing renews it from here on: that ends before this returns (docs/spec.md §4.1).
   *
   * @throws LockError `LOCK_LOST` if the store had lost it before, `LOCK_BACKEND` if the store gave no answer
   */
  release(hold: Hold): Promise<void> {
    const now = this.now();
    const lost = hold.lostAt(now);
    hold.released = true;
    this.#drop(hold);
    if (lost !== undefined) return Promise.reject(lost);
    const giveUpAt = Math.min(hold.deadline, now + SETTLE_MS);
    return this.#settle(
      (call) => this.backend.release(hold.grant, call),
      now,
      giveUpAt,
      (sent) => this.#released(hold, sent),
    );
  }

  /** In the background: afterwards the id neither holds nor waits, or ends by itself within its ttl. */
  abandon(request: AcquireRequest): void {
    const now = this.now();
    void this.#settle(
      (call) => this.backend.abandon(request, call),
      now,
      now + SETTLE_MS,
      (sent) => {
        if (sent.answered) return;
        const { resource, acquisitionId } = request;
        publish('locks:abandon-failed', {
          resource,
          backend: this.backendName,
          acquisitionId,
          error: sent.error,
        });
      },
    );
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
    if (this.#settling > 0) await new Promise<void>((resolve) => (this.#allSettled = resolve));
    this.keeper.stop();
    const patience = new Patience(this.patiences, this.now() + CLOSE_MS, undefined, true);
    this.keepAlive.enter();
    try {
      if ((await patience.guard(this.backend.close())) === INTERRUPTED) throw noAnswerWithin(CLOSE_MS);
    } catch (error) {
      throw this.backendError('close', undefined, error);
    } finally {
      this.keepAlive.leave();
      patience.done();
      this.patiences.stop();
    }
  }

  #drop(hold: Hold): void {
    this.keeper.remove(hold);
    hold.unfollow?.();
  }

  #released(hold: Hold, sent: Settled<'released' | 'not-held' | 'unknown'>): void {
    const { resource } = hold.grant.request;
    if (!sent.answered) throw this.backendError('release', resource, sent.error);
    this.lines.released(resource);
    switch (sent.answer) {
      case 'not-held':
        // After an unanswered sending it means that the earlier one released it (docs/spec.md §2.4).
        if (sent.sendings === 1)
          throw hold.foundLost(this.now() >= hold.deadline ? 'expired' : 'force-released');
        break;
      case 'released':
      case 'unknown':
        break;
      default:
        sent.answer satisfies never;
        throw this.backendError('release', resource, new Error('the backend broke its contract: no answer'));
    }
    if (releasedIsWatched())
      publish('locks:released', { ...identity(hold), heldMs: this.now() - hold.grantedAt });
  }

  /** Sends a call until it is answered, or until `giveUpAt`; `conclude` decides what came of it. */
  async #settle<T>(
    send: (call: Call) => Promise<T>,
    startedAt: number,
    giveUpAt: number,
    conclude: (sent: Settled<T>) => void,
  ): Promise<void> {
    this.#settling += 1;
    /** The earlier sendings: it never settles where they fail. */
    let unanswered: Promise<T> | undefined;
    for (let sendings = 1, now = startedAt; ; sendings += 1, now = this.now()) {
      const patience = new Patience(this.patiences, Math.min(giveUpAt, now + RESEND_MS), undefined, true);
      let sent: Settled<T>;
      let repeatable = true;
      try {
        const asking = unanswered === undefined ? send(patience) : Promise.race([unanswered, send(patience)]);
        const answer = await patience.guard(asking);
        if (answer === INTERRUPTED) {
          unanswered = asking.catch(() => new Promise<never>(() => {}));
          sent = { answered: false, error: new Error('the store did not answer in time') };
        } else sent = { answered: true, answer, sendings };
      } catch (error) {
        sent = { answered: false, error };
        repeatable = this.isRetryable(error);
      }
      patience.done();
      const again = !sent.answered && repeatable && (await this.#pause(BACKOFF_MS * sendings, giveUpAt));
      if (!again) {
        this.#settling -= 1;
        if (this.#settling === 0) this.#allSettled?.();
        return conclude(sent);
      }
    }
  }

  /** Whether there is still time after a pause: a stalled loop may come back from it too late. */
  async #pause(ms: number, giveUpAt: number): Promise<boolean> {
    if (this.now() + ms >= giveUpAt) return false;
    await delay(ms);
    return this.now() < giveUpAt;
  }
}

export function noAnswerWithin(ms: number): Error {
  return new Error(`no answer within ${Math.round(ms)} ms`);
}

type Settled<T> =
  | { readonly answered: true; readonly answer: T; readonly sendings: number }
  | { readonly answered: false; readonly error: unknown };
