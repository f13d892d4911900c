import type { RenewalStatus } from '@locks/core/backend';
import {
  type Attempted,
  LockRules,
  type RulesContext,
  type RulesRequest,
  type WaiterRecord,
} from '@locks/core/rules';
import type { LockRow } from './lock-row.ts';
import { RowCapacity } from './row-capacity.ts';

/** The input of a decision besides the row itself. */
export interface DecisionContext extends RulesContext {
  isAlive(client: string): boolean;
  serves(client: string): boolean;
  /** The present time of the table's clock, where that is a clock of this process. */
  readonly now: (() => number) | undefined;
  /** The number that new tokens are above; `undefined`: the time of the state. */
  readonly tokenFloor: (() => number) | undefined;
  /** The longest state of a resource, in bytes. */
  readonly maxStateBytes: number;
}

/**
 * The rules of a lock applied to one row. The steps that come together are decided one after another, and the result is
 * written by one compare and swap or not at all.
 */
export class RowDecision extends LockRules {
  /** The version of the row that it was made from. */
  readonly version: number;
  /** Whether a step's answer depends on the time of the state, so that a state that may be stale is not enough. */
  needsFresh = false;
  /**
   * Whether the answer to an attempt depends on which clients live: of those that could be next, where they keep it from what is free; of
   * all, where the queue has no room.
   */
  dependsOn: 'next' | 'all' | undefined;
  /** The table's time by which the state must be written: no hold that was found alive may have ended then. */
  readonly aliveUntil: number;
  /** Whether the state has a hold whose end only the row has. */
  readonly standsOnRow: boolean;
  /**
   * Whether holds have ended that others cannot know to have ended, by the clock of this process: the row is written without them,
   * for who has just come and has not seen them for their ttl.
   */
  readonly hasEnded: boolean;
  /** What the table keeps of the row, to write over it. */
  readonly source: unknown;
  readonly #maxStateBytes: number;
  readonly #client: string;
  /** The first waiter and the holds before the decision. */
  readonly #before: string;
  #capacity: RowCapacity | undefined;

  /**
   * @param now - the table's time when the row was read, or earlier
   * @param passed - the least time since `now`, in microseconds
   */
  constructor(row: LockRow, now: number, context: DecisionContext, passed: number) {
    // Tokens rise at least with the clock: a store that lost its last writes, as in a failover, had given out tokens up to
    // that time.
    const least = Math.max(row.token, context.tokenFloor?.() ?? now);
    const token = Math.min(least + passed, Number.MAX_SAFE_INTEGER);
    super({ ...row, token }, context);
    this.version = row.version;
    this.source = row.source;
    this.#maxStateBytes = context.maxStateBytes;
    this.#client = context.client;
    this.#before = turnOf(row);
    this.expire(now);
    this.hasEnded = context.now !== undefined && this.holds.length < row.holds.length;
    this.aliveUntil = this.nextEnd;
    this.standsOnRow = !this.isWhole;
  }

  /** Whether the state can be written: the end of each hold is known, or counts from the write. */
  get isWhole(): boolean {
    return this.holds.every(({ until, span }) => until !== undefined || span !== undefined);
  }

  override attempt(request: RulesRequest, ttl: number, enqueue: boolean): Attempted {
    const attempted = super.attempt(request, ttl, enqueue);
    switch (attempted.status) {
      case 'full':
        // Others may have left since the row was read.
        this.dependsOn = 'all';
        this.needsFresh = true;
        return attempted;
      case 'contended':
        if (!enqueue && this.next !== undefined) this.dependsOn ??= 'next';
        return attempted;
      case 'granted':
        // The acquisition holds already, and what is left of that hold depends on the time.
        if (attempted.left !== undefined) this.needsFresh = true;
        return attempted;
      case 'conflict':
        return attempted;
      default:
        return attempted satisfies never;
    }
  }

  /** Only the store itself can say that a lease is lost. */
  override renew(id: string, token: number, ttl: number): RenewalStatus {
    const renewed = super.renew(id, token, ttl);
    if (renewed.status !== 'held') this.needsFresh = true;
    return renewed;
  }

  override hasRoomFor(waiter: WaiterRecord): boolean {
    this.#capacity ??= new RowCapacity(this.#maxStateBytes, this);
    return this.#capacity.take(waiter);
  }

  /** The client of another process whose turn comes by this decision: its waiter may enter, and could not or was not the first before. */
  get wakes(): readonly string[] {
    const { next } = this;
    if (next === undefined || next.client === this.#client || turnOf(this) === this.#before) return [];
    return [next.client];
  }

  /** The row once it is written, at the table's time `at`. */
  written(version: number, { at, source }: { readonly at: number; readonly source: unknown }): LockRow {
    this.commit(at);
    return { version, token: this.token, holds: this.holds, waiters: this.waiters, source };
  }
}

/** Who holds, and who is the next to enter. */
function turnOf({ holds, waiters }: Pick<LockRow, 'holds' | 'waiters'>): string {
  return [waiters[0]?.id, ...holds.map(({ id, mode }) => `${id} ${mode.kind}`)].join(' ');
}

/** Milliseconds as whole microseconds, rounded up. */
export function micros(ms: number): number {
  return Math.ceil(ms * 1_000);
}
