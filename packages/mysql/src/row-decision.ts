import {
  type Attempted,
  LockRules,
  type RulesContext,
  type RulesRequest,
  type WaiterRecord,
} from '@locks/core/rules';
import { encodeState, type LockRow } from './lock-row.ts';
import { RowCapacity } from './row-capacity.ts';

/** The input of a decision besides the row itself. */
export interface DecisionContext extends RulesContext {
  isAlive(client: string): boolean;
  serves(client: string): boolean;
  /** The longest state of a resource, in bytes. */
  readonly maxStateBytes: number;
}

/**
 * The rules of a lock applied to one row. The steps that come together are decided one after another, and the result is
 * written by one statement or not at all: `UPDATE … WHERE version = …`.
 */
export class RowDecision extends LockRules {
  readonly version: number;
  /** Whether a step's answer depends on the time of the state, so that a state that may be stale is not enough. */
  needsFresh = false;
  /** The server's time by which the state must be written: no hold that was found alive may have ended then. */
  readonly aliveUntil: number;
  /** Whether the state has a hold whose end only the row has. */
  readonly standsOnRow: boolean;
  /** The encoded state, as it stands in the row; `undefined` if that is not known. */
  readonly rowBytes: Buffer | undefined;
  readonly #maxStateBytes: number;
  #capacity: RowCapacity | undefined;
  #bytes: Buffer | undefined;

  /**
   * @param now - the server's time when the row was read, or earlier
   * @param passed - the least time since `now`, in microseconds
   */
  constructor(row: LockRow, now: number, context: DecisionContext, passed = 0) {
    // Tokens rise at least with the clock: a server that lost its last writes, as in a failover, had given out tokens up to
    // that time.
    const token = Math.max(row.token, now) + passed;
    super({ ...row, token }, context);
    this.version = row.version;
    this.rowBytes = row.bytes;
    this.#maxStateBytes = context.maxStateBytes;
    this.expire(now);
    this.aliveUntil = this.nextEnd;
    this.standsOnRow = !this.isWhole;
  }

  /** The encoded state to be written. No step is decided after this was read. */
  get bytes(): Buffer {
    return (this.#bytes ??= encodeState(this));
  }

  /** Whether the state can be written: the end of each hold is known, or counts from the write. */
  get isWhole(): boolean {
    return this.holds.every(({ until, span }) => until !== undefined || span !== undefined);
  }

  override attempt(request: RulesRequest, ttl: number, enqueue: boolean): Attempted {
    const attempted = super.attempt(request, ttl, enqueue);
    // An attempt that did not fit: others may have left since the row was read. An id that holds already: time has passed.
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
