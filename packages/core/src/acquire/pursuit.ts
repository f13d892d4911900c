import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireRequest, Attempt, Grant, LockMode } from '../backend/types.ts';
import { type Engine, noAnswerWithin } from '../engine.ts';
import { publish } from '../events.ts';
import type { ResolvedOptions } from '../options.ts';
import { describe } from '../errors.ts';
import { endOf, type Hold, type Since } from '../tenure/hold.ts';
import { standingOf } from '../tenure/keeper.ts';
import { freshAcquisitionId } from './acquisition-id.ts';
import { conflictError } from './conflict-error.ts';
import { faultOfGrant } from './check-grant.ts';
import { asFailure, asked, type Failure, isFailure } from './failure.ts';
import { endedFromOutside } from './interrupted.ts';
import type { Place } from './lines.ts';
import { INTERRUPTED, Patience } from './patience.ts';
import { reportAcquired, takeUp, USELESS_GRANT } from './take-up.ts';
import { HolderLookUp, timeoutError } from './timeout-error.ts';

/** A single attempt has no `waitMs` to end it: it is given up after the ttl, or this. */
const SINGLE_ATTEMPT_MS = 10_000;
/** For a backend that says neither when to retry nor when it is our turn. */
const DEFAULT_RETRY_MS = 50;
const FIRST_BACKOFF_MS = 20;
const LONGEST_BACKOFF_MS = 1_000;
/** Hints that come faster than this without a grant are slowed down: no store is polled in a tight loop. */
const HINT_PAUSE_MS = 2;

type Turn =
  | { readonly status: 'look-again' | 'interrupted' }
  | { readonly status: 'granted'; readonly grant: Grant };

/** One acquire: attempt → wait → attempt …, ended by a grant, or by abandoning the id. The only wait loop there is. */
export class Pursuit {
  readonly #engine: Engine;
  readonly #options: ResolvedOptions;
  readonly #enqueue: boolean;
  /** Whether the store keeps those who wait, by their ids. */
  readonly #queues: boolean;
  readonly #startedAt: number;
  readonly #patience: Patience;
  #request: AcquireRequest;
  #contended = false;
  #lastError: unknown;
  #failures = 0;
  #hints = 0;
  #lookUp: HolderLookUp | undefined;
  /** Among those of this process, where the store keeps no queue. */
  #place: Place | undefined;

  constructor(engine: Engine, resource: string, mode: LockMode, options: ResolvedOptions, startedAt: number) {
    this.#engine = engine;
    this.#options = options;
    this.#enqueue = options.waitMs > 0;
    this.#queues = engine.backend.capabilities.order === 'fifo';
    this.#startedAt = startedAt;
    const waitMs = this.#enqueue ? options.waitMs : Math.min(options.ttlMs, SINGLE_ATTEMPT_MS);
    this.#patience = new Patience(engine.patiences, startedAt + waitMs, options.signal);
    this.#request = {
      resource,
      acquisitionId: freshAcquisitionId(),
      label: options.label,
      mode,
      ttlMs: options.ttlMs,
      ...(options.steal ? { steal: true } : undefined),
    };
  }

  /**
   * The hold, or `undefined` when a single attempt found the resource contended.
   *
   * @throws LockError `LOCK_TIMEOUT`, `LOCK_BACKEND`, `LOCK_CLOSED`, or the reason of the caller's signal
   */
  async run(): Promise<Hold | undefined> {
    try {
      // Since the call it may have queued for a turn: the caller, or the manager, may have ended meanwhile.
      if (this.#patience.interruption !== undefined) throw this.#reason(this.#request.resource);
      // Those of this manager who wait already come before.
      if (
        this.#standsInLine &&
        this.#engine.lines.has(this.#request.resource) &&
        !(await this.#standInLine())
      ) {
        throw this.#giveUp();
      }
      for (;;) {
        const attempt = await this.#attempt();
        // A grant and an interruption in one turn: the caller was told to stop, so it does not hold.
        if (attempt === INTERRUPTED || this.#patience.interruption !== undefined) throw this.#giveUp();
        // Handed over while nobody waited for it, after a failed wait say.
        const isLate = this.#contended && attempt?.status === 'granted' && this.#isShort(attempt.grant);
        if (!isLate) {
          const hold = this.#judge(attempt);
          if (hold !== undefined) return hold;
          if (!this.#enqueue) return undefined;
        }
        const turn: Turn = isLate ? attempt : await this.#awaitTurn(attempt);
        // Also in the moment between the turn and here.
        if (turn.status === 'interrupted' || this.#patience.interruption !== undefined) throw this.#giveUp();
        if (turn.status === 'granted') {
          const handed = await this.#handed(turn.grant);
          if (handed !== undefined) return handed;
        } else if (!this.#queues) {
          // What the backend takes back of the last attempt may arrive after the next (docs/spec.md §2.2).
          if (isFailure(attempt)) this.#engine.abandon(this.#request);
          this.#renewId();
        }
      }
    } finally {
      this.#patience.done();
      this.#place?.leave();
      this.#lookUp?.stop();
    }
  }

  #attempt(): Promise<Attempt | Failure | typeof INTERRUPTED> {
    const request = this.#request;
    const enqueue = this.#enqueue;
    const sent = asked(() => this.#engine.backend.attempt(request, enqueue, this.#patience));
    return this.#patience.guard<Attempt | Failure>(sent, asFailure, (late) => {
      // The id was abandoned already, perhaps before this attempt reached the store (docs/spec.md §2.2).
      if (enqueue || late?.status === 'granted') this.#engine.abandon(request);
    });
  }

  #judge(attempt: Attempt | Failure): Hold | undefined {
    switch (attempt?.status) {
      case 'granted':
        return this.#accept(attempt.grant);
      case 'contended':
        this.#lastError = undefined;
        this.#failures = 0;
        this.#foundContended();
        return undefined;
      case 'conflict':
        // Also after a turn of waiting: the limit that this id queued for was known then.
        throw this.#giveUp(conflictError(this.#engine, this.#request, attempt.with));
      case 'failed':
        this.#failed(attempt.error);
        return undefined;
      default:
        return this.#protocolError(
          `an attempt answered ${describe((attempt as Partial<Attempt> | null | undefined)?.status)}`,
        );
    }
  }

  /**
   * A hand-over lasts for a moment, until it is renewed: where its caller asks for more than that to remain, it is renewed
   * first. One that is of no use is given back, and followed by a pause: two waiters would hand it to each other for ever.
   */
  async #handed(grant: Grant): Promise<Hold | undefined> {
    const since = this.#isShort(grant) ? await this.#renewed(grant) : grant;
    const hold = since === undefined ? undefined : this.#accept(grant, since);
    if (hold !== undefined) return hold;
    const { keepAlive } = this.#engine;
    keepAlive.enter();
    try {
      if ((await this.#backOff()).status === 'interrupted') throw this.#giveUp();
    } finally {
      keepAlive.leave();
    }
    return undefined;
  }

  #isShort(grant: Grant): boolean {
    const { countedFrom = 0, validForMs } = (grant ?? {}) as Partial<Grant>;
    const { ttlMs, minRemainingMs } = this.#options;
    if (validForMs === undefined || validForMs >= ttlMs) return false;
    const leftMs = endOf(countedFrom, validForMs) - this.#engine.now();
    return leftMs > 0 && leftMs <= minRemainingMs;
  }

  async #renewed(grant: Grant): Promise<Since | undefined> {
    const { backend } = this.#engine;
    const { ttlMs } = this.#options;
    const countedFrom = this.#engine.now();
    const sent = asked<unknown>(() => backend.renew([{ grant, ttlMs }], this.#patience));
    const answer = await this.#patience.guard(sent, asFailure);
    if (answer === INTERRUPTED || this.#patience.interruption !== undefined) throw this.#giveUp();
    const standing = standingOf(answer, 0);
    if (standing.status === 'held') return { countedFrom, validForMs: standing.validForMs ?? ttlMs };
    this.#giveBack();
    return undefined;
  }

  #accept(grant: Grant, since: Since = grant): Hold | undefined {
    const engine = this.#engine;
    const now = engine.now();
    const fault = faultOfGrant(grant, this.#request.acquisitionId, engine.backend.capabilities, now);
    if (fault !== undefined) return this.#protocolError(fault);
    const hold = takeUp(engine, grant, this.#options, now, since);
    if (hold === undefined) this.#giveBack();
    else reportAcquired(engine, this.#request, grant, now - this.#startedAt);
    return hold;
  }

  /** The grant is of no use: an expired or lost lease is never handed out (docs/spec.md §1.4). */
  #giveBack(): void {
    this.#engine.abandon(this.#request);
    this.#lastError = new Error(USELESS_GRANT);
    this.#failures += 1;
    if (!this.#enqueue) throw this.#engine.backendError('acquire', this.#request.resource, this.#lastError);
    this.#renewId();
  }

  /** An id that was given up is never used again. */
  #renewId(): void {
    this.#request = { ...this.#request, acquisitionId: freshAcquisitionId() };
  }

  /** After a contended attempt the wait for our turn; after a failed one, or a grant given back, a pause. */
  async #awaitTurn(attempt: Attempt | Failure): Promise<Turn> {
    const { backend, keepAlive, lines } = this.#engine;
    keepAlive.enter();
    try {
      if (this.#place === undefined && this.#standsInLine) {
        const isNew = !lines.has(this.#request.resource);
        const came = await this.#standInLine();
        if (!isNew) return { status: came ? 'look-again' : 'interrupted' };
      }
      if (attempt.status !== 'contended') return await this.#backOff();
      const { retryAfterMs } = attempt;
      if (backend.awaitTurn === undefined)
        return await this.#pause(jittered(Math.max(retryAfterMs ?? DEFAULT_RETRY_MS, HINT_PAUSE_MS)));
      const now = this.#engine.now();
      const retryAt =
        retryAfterMs === undefined
          ? Number.POSITIVE_INFINITY
          : now + jittered(Math.max(retryAfterMs, HINT_PAUSE_MS));
      return await this.#hintOrGrant(retryAt, now);
    } finally {
      keepAlive.leave();
    }
  }

  /** Where the store keeps no queue, those of one manager wait one behind the other. */
  get #standsInLine(): boolean {
    return this.#enqueue && !this.#queues && !this.#options.steal;
  }

  #foundContended(): void {
    if (this.#enqueue) this.#lookUp ??= this.#lookUpLater();
    if (!this.#contended) publish('locks:contended', this.#identity());
    this.#contended = true;
  }

  /** Whether the turn came before the wait was over. */
  async #standInLine(): Promise<boolean> {
    this.#place = this.#engine.lines.join(this.#request.resource);
    if (this.#place.isFirst) return true;
    this.#foundContended();
    const { keepAlive } = this.#engine;
    keepAlive.enter();
    try {
      return (await this.#patience.guard(this.#place.turn)) !== INTERRUPTED;
    } finally {
      keepAlive.leave();
    }
  }

  async #hintOrGrant(retryAt: number, startedAt: number): Promise<Turn> {
    const request = this.#request;
    // A patience of its own: the backend must stop listening when only the fallback check is due.
    const { patiences, backend } = this.#engine;
    const turn = new Patience(patiences, Math.min(this.#patience.deadline, retryAt), this.#options.signal);
    try {
      const pushed = await turn.guard<Grant | Failure | undefined>(
        asked(() => backend.awaitTurn?.(request, turn)),
        asFailure,
        (late) => this.#grantTooLate(request, late),
      );
      if (pushed === INTERRUPTED) {
        // Both patiences may end in the same moment, in either order.
        if (turn.interruption !== 'deadline' || retryAt >= this.#patience.deadline)
          this.#patience.interrupt(turn.interruption);
        return { status: this.#patience.interruption === undefined ? 'look-again' : 'interrupted' };
      }
      if (this.#patience.interruption !== undefined) {
        this.#grantTooLate(request, pushed);
        return { status: 'interrupted' };
      }
      if (pushed === undefined) return await this.#hinted(startedAt);
      if (isFailure(pushed)) {
        this.#failed(pushed.error);
        return await this.#backOff();
      }
      return { status: 'granted', grant: pushed };
    } finally {
      turn.done();
    }
  }

  #grantTooLate(request: AcquireRequest, late: Grant | Failure | undefined): void {
    // Nobody waits for this id any more: it must not hold (docs/spec.md §2.3).
    if (
      late !== undefined &&
      !isFailure(late) &&
      (this.#patience.interruption !== undefined || request !== this.#request)
    ) {
      this.#engine.abandon(request);
    }
  }

  async #hinted(startedAt: number): Promise<Turn> {
    this.#hints = this.#engine.now() - startedAt < HINT_PAUSE_MS ? this.#hints + 1 : 0;
    return this.#hints <= 2
      ? { status: 'look-again' }
      : await this.#pause(Math.min(this.#hints, 2 * DEFAULT_RETRY_MS));
  }

  #backOff(): Promise<Turn> {
    return this.#pause(
      jittered(Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures - 1, 10), LONGEST_BACKOFF_MS)),
    );
  }

  async #pause(ms: number): Promise<Turn> {
    const cancel = new AbortController();
    const place = this.#place;
    if (place !== undefined) place.hinted = () => cancel.abort();
    const slept = delay(ms, true, { signal: cancel.signal });
    const outcome = await this.#patience.guard<boolean | Failure>(slept, asFailure);
    if (place !== undefined) place.hinted = undefined;
    cancel.abort();
    return { status: outcome === INTERRUPTED ? 'interrupted' : 'look-again' };
  }

  /** Rethrows what cannot be repeated. */
  #failed(error: unknown): void {
    this.#lastError = error;
    this.#failures += 1;
    if (this.#enqueue && this.#engine.isRetryable(error)) return;
    // The command may have run all the same (docs/spec.md §2.2).
    throw this.#giveUp(this.#engine.backendError('acquire', this.#request.resource, error));
  }

  /** Leaves nothing behind, and gives what the caller is told. */
  #giveUp(error = this.#reason(this.#request.resource)): unknown {
    this.#engine.abandon(this.#request);
    publish('locks:gave-up', { ...this.#identity(), waitedMs: this.#engine.now() - this.#startedAt, error });
    return error;
  }

  #reason(resource: string): unknown {
    const waitedMs = this.#engine.now() - this.#startedAt;
    const ended = endedFromOutside(this.#engine, resource, this.#patience);
    if (ended !== undefined) return ended.reason;
    if (this.#contended && this.#lastError === undefined) {
      return timeoutError(this.#engine, resource, waitedMs, this.#lookUp?.holders);
    }
    return this.#engine.backendError('acquire', resource, this.#lastError ?? noAnswerWithin(waitedMs));
  }

  #protocolError(what: string): never {
    const cause = new Error(`the backend broke its contract: ${what}`);
    throw this.#giveUp(this.#engine.backendError('acquire', this.#request.resource, cause));
  }

  #lookUpLater(): HolderLookUp | undefined {
    const { deadline } = this.#patience;
    if (deadline === Number.POSITIVE_INFINITY) return undefined;
    return new HolderLookUp(this.#engine, this.#request.resource, this.#startedAt, deadline);
  }

  #identity(): { resource: string; backend: string; acquisitionId: string } {
    const { resource, acquisitionId } = this.#request;
    return { resource, backend: this.#engine.backendName, acquisitionId };
  }
}

/** Up to a fifth less: processes that were refused together do not come back together. */
function jittered(ms: number): number {
  return ms * (1 - Math.random() / 5);
}
