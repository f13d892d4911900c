import type { LossReason } from '../backend/types.ts';
import { endOf } from '../lifetime/lease-state.ts';
import type { ToThread } from './messages.ts';
import {
  COUNTED_FROM,
  ENDED,
  LEASE_CELLS,
  LOST,
  NS_PER_MS,
  REASON,
  REASONS,
  RELEASE_ANSWERED,
  RELEASE_SENT,
  RELEASING,
  sharedCells,
  STATE,
  UNCONFIRMED,
} from './shared-lease.ts';

/** A message, without the time at which it is sent. */
export type Message = ToThread extends infer M ? (M extends unknown ? Omit<M, 'at'> : never) : never;

/** The thread, as far as one lease needs it. */
interface Thread {
  post(message: Message): void;
  /** Forgets a lease of which no message is awaited any more. */
  forget(id: number): void;
  /** The time on the manager's clock of a monotonic time, or an earlier one. */
  timeOf(countedFromNs: bigint): number;
}

/** The renewal of one lease by the thread, as the event loop reads it at once from the memory that both share. */
export class SharedRenewal {
  readonly cells = sharedCells(LEASE_CELLS);
  readonly ttlMs: number;
  /** Called in a later turn of the event loop when the store said that the lease is lost. */
  onLost = (_reason: LossReason): void => {};
  /** Called when the thread renews the lease no longer, and nobody has ended that. */
  onDropped = (): void => {};
  /** Called when no renewal is under way any more after the end. */
  onSettled: (() => void) | undefined;
  readonly #renewer: Thread;
  readonly #id: number;
  readonly #firstNs: bigint;
  readonly #first: number;
  #hasEnded = false;

  /** @param first - the time from which the ttl counts until the thread has renewed the lease, on the clock of the manager */
  constructor(renewer: Thread, id: number, ttlMs: number, first: number, firstNs: bigint) {
    this.#renewer = renewer;
    this.#id = id;
    this.ttlMs = ttlMs;
    this.#first = first;
    this.#firstNs = firstNs;
    this.cells[COUNTED_FROM] = firstNs;
  }

  /** When the last confirmed renewal was sent, or before, on the clock of the manager. */
  get countedFrom(): number {
    const countedFromNs = Atomics.load(this.cells, COUNTED_FROM);
    return countedFromNs === this.#firstNs ? this.#first : this.#renewer.timeOf(countedFromNs);
  }

  /** The same on the monotonic clock. */
  get countedFromMs(): number {
    return Number(Atomics.load(this.cells, COUNTED_FROM)) / NS_PER_MS;
  }

  get validUntil(): number {
    return endOf(this.countedFrom, this.ttlMs);
  }

  /** Why the store no longer has the lease. */
  get lossReason(): LossReason | undefined {
    if (Atomics.load(this.cells, STATE) !== LOST) return undefined;
    return REASONS[Number(Atomics.load(this.cells, REASON))];
  }

  /** Whether a renewal has no clear answer: the store may still carry it out. */
  get isUnconfirmed(): boolean {
    return Atomics.load(this.cells, UNCONFIRMED) !== 0n;
  }

  /** Whether the store has answered the release that the thread sent. */
  get isReleaseAnswered(): boolean {
    return Atomics.load(this.cells, STATE) === RELEASE_ANSWERED;
  }

  /**
   * Ends the renewal: the thread sends none from here on. Gives whether the store may still carry out one; `onSettled` is called when its call
   * has ended.
   */
  end(): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    // First this, and then whether a renewal is under way: the thread does it the other way round (docs/spec.md §20.5).
    Atomics.store(this.cells, STATE, ENDED);
    const { isUnconfirmed } = this;
    this.#renewer.post({ op: 'end', id: this.#id, isAwaited: isUnconfirmed });
    if (!isUnconfirmed) this.#renewer.forget(this.#id);
    return isUnconfirmed;
  }

  /** Ends the renewal of a lease that is being released: should the event loop stand still before the store has answered, the thread releases it. */
  endByRelease(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    Atomics.store(this.cells, STATE, RELEASING);
    this.#renewer.post({ op: 'release', id: this.#id });
    this.#renewer.forget(this.#id);
  }

  /** Tells the thread that its release is needed no more. Gives whether it has sent one. */
  releaseAnswered(): boolean {
    const state = Atomics.compareExchange(this.cells, STATE, RELEASING, ENDED);
    return state === RELEASE_SENT || state === RELEASE_ANSWERED;
  }
}
