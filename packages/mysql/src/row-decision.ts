import {
  type Attempted,
  LockRules,
  type RulesContext,
  type RulesRequest,
  type WaiterRecord,
} from '@locks/core/rules';
import { encodeState, type LockRow } from './lock-row.ts';
import { RowCapacity } from './row-capacity.ts';

/** What a decision is made from, besides the row itself. */
export interface DecisionContext extends RulesContext {
  isAlive(client: string): boolean;
  serves(client: string): boolean;
  /** The longest state of a resource, in bytes. */
  readonly maxStateBytes: number;
}

/**
 * The rules of a lock applied to one row. The steps that come together are decided one after another, and what comes out is
 * written by one statement or not at all: `UPDATE … WHERE version = …`.
 */
export class RowDecision extends LockRules {
  readonly version: number;
  /** Whether a step's answer depends on the time of the state, so that a state known from before will not do. */
  needsFresh = false;
  /** No hold that was found alive may have ended when this is written. */
  readonly aliveUntil: number;
  /** Whether the state has a hold whose end is known to the row only. */
  readonly standsOnRow: boolean;
  /** The state as it stands in the row, where that is known. */
  readonly rowBytes: Buffer | undefined;
  readonly #maxStateBytes: number;
  #capacity: RowCapacity | undefined;
  #bytes: Buffer | undefined;

  /**
   * @param now - the server's time when the row was read, or earlier
   * @param passed - how long ago that was at least, in microseconds
   */
  constructor(row: LockRow, now: number, context: DecisionContext, passed = 0) {
    // A server that lost its last writes, as after a failover, gave out tokens up to the time at which it lost them.
    const token = Math.max(row.token, now) + passed;
    super({ ...row, token }, context);
    this.version = row.version;
    this.rowBytes = row.bytes;
    this.#maxStateBytes = context.maxStateBytes;
    this.expire(now);
    this.aliveUntil = this.nextEnd;
    this.standsOnRow = !this.isWhole;
  }

  /** The state to be written. Nothing is decided afterwards. */
  get bytes(): Buffer {
    return (this.#bytes ??= encodeState(this));
  }

  /** Whether the state can be written: the end of each hold is known, or counts from the write. */
  get isWhole(): boolean {
    return this.holds.every(({ until, span }) => until !== undefined || span !== undefined);
  }

  override attempt(request: RulesRequest, ttl: number, enqueue: boolean): Attempted {
    const attempted = super.attempt(request, ttl, enqueue);
    // Where it did not fit, others may have left since the row was read; where it holds, time has passed.
    if ('isFull' in attempted || 'left' in attempted) this.needsFresh = true;
    return attempted;
  }

  override hasRoomFor(waiter: WaiterRecord): boolean {
    this.#capacity ??= new RowCapacity(this.#maxStateBytes, this);
    return this.#capacity.take(waiter);
  }

  /** The row once it is written, at the server's time `at`. */
  written(version: number, at: number): LockRow {
    const { bytes } = this;
    this.commit(at);
    return { version, token: this.token, holds: this.holds, waiters: this.waiters, bytes };
  }
}

export function micros(ms: number): number {
  return Math.ceil(ms * 1_000);
}
