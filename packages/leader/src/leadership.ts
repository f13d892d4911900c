import { type BaseLease, isLockError, type Lease } from '@locks/core';

/** The argument of a leader's work on any backend. {@link Leadership} has the token too, where there is one. */
export interface BaseLeadership {
  readonly name: string;
  /**
   * The number of times that this call of `lead` has led, this time included: 1, 2, 3. It counts in this process only; the
   * order over all processes is that of `fencingToken`.
   */
  readonly epoch: number;
  /** The identity of this leadership, which `leader` and `watch` show too. */
  readonly acquisitionId: string;
  /** Milliseconds for which this leadership is still certain, without another renewal; 0 once it has ended. */
  readonly validForMs: number;
  /**
   * Aborts when this leadership ends: with `LOCK_LOST` before anyone else can lead, with an `AbortError` after `resign()`, with
   * its own reason when the signal of `lead` aborts.
   */
  readonly signal: AbortSignal;
  /**
   * Throws unless this leadership is certain for more than `minRemainingMs`.
   * @param minRemainingMs - milliseconds; default 0
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD` when the work has ended
   */
  assertValid(minRemainingMs?: number): void;
  /**
   * Gives this leadership up: `signal` aborts, and as soon as the work has ended another candidate leads. The leadership stays
   * with this process until then: two never work at once.
   */
  resign(): void;
}

/** The argument of a leader's work. `fencingToken` is that of the lease, and absent where the backend has none. */
export type Leadership<L extends BaseLease = Lease> = BaseLeadership & Pick<L, keyof L & 'fencingToken'>;

/** A leadership on a lease. */
export class LeaseLeadership implements BaseLeadership {
  readonly name: string;
  readonly epoch: number;
  readonly acquisitionId: string;
  readonly fencingToken: bigint | undefined;
  readonly #lease: Lease;
  readonly #controller = new AbortController();
  readonly #unfollow: () => void;

  /** @param end - the signal of the campaign */
  constructor(lease: Lease, epoch: number, end: AbortSignal) {
    this.#lease = lease;
    this.name = lease.name;
    this.epoch = epoch;
    this.acquisitionId = lease.acquisitionId;
    this.fencingToken = lease.fencingToken;
    const endings = [lease.signal, end].map((signal) => this.#follow(signal));
    this.#unfollow = () => {
      for (const unfollow of endings) unfollow();
    };
  }

  get validForMs(): number {
    return this.#controller.signal.aborted ? 0 : this.#lease.validForMs;
  }

  get signal(): AbortSignal {
    // The lease reads the clock: after a stall its signal aborts here, before any timer ran (docs/spec.md §1.3).
    void this.#lease.signal;
    return this.#controller.signal;
  }

  assertValid(minRemainingMs?: number): void {
    this.#lease.assertValid(minRemainingMs);
  }

  resign(): void {
    this.#controller.abort(new DOMException('The leader resigned.', 'AbortError'));
  }

  /** Tells whether an error of the work says no more than that this leadership has ended. */
  isEndedBy(error: unknown): boolean {
    if (isLockError(error, 'LOCK_LOST')) return error.lockName === undefined || error.lockName === this.name;
    const { signal } = this;
    if (!signal.aborted) return false;
    return error === signal.reason || (error instanceof Error && error.name === 'AbortError');
  }

  /**
   * Releases the lease, to be called when the work has ended. Its loss has ended the leadership already; core's event reports a
   * release without an answer.
   */
  async end(): Promise<void> {
    this.#unfollow();
    await this.#lease.release().catch(() => {});
  }

  #follow(signal: AbortSignal): () => void {
    const onAbort = (): void => this.#controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    return () => signal.removeEventListener('abort', onAbort);
  }
}
