import { type Call, PRIORITIES, type Priority } from '@locks/core/backend';
import { type LockRow, NO_ROW } from './lock-row.ts';
import { type DecisionContext, RowDecision } from './row-decision.ts';
import type { RecordTable, RowTaken } from './record-table.ts';
import type { TimeLimit } from './time-limit.ts';

/** One step of the protocol on one resource, decided together with other steps that come in the same moment. */
export interface RowStep {
  readonly call: Call;
  /** The time `call.now()` before the sending of the statement that answers the step. */
  sentAt: number;
  readonly priority: Priority;
  /** Whether the step may add a waiter. */
  readonly enqueues: boolean;
  /** Takes the resource for this acquisition in one request, if its row is unknown. */
  readonly take:
    | { readonly acquisitionId: string; run(table: RecordTable, limit: TimeLimit): Promise<RowTaken> }
    | undefined;
  /** Takes part in a decision. May be called again, for a newer decision. */
  decide(decision: RowDecision, ambiguous: boolean): void;
  /** Called when the last decision is written, or needed no write. */
  finish(): void;
  fail(error: unknown): void;
}

/** The knowledge of this process of one row, and the steps that wait to be decided on it. */
export class RowWriter {
  readonly resource: string;
  readonly pending: RowStep[] = [];
  /** Ids that hold or wait by this backend object. When the last of them leaves, the writer is forgotten. */
  readonly own = new Set<string>();
  /** Ids that are being abandoned: an attempt of such an id that is still on its way here does nothing. */
  readonly abandoned = new Set<string>();
  /** Ids with an attempt under way here: core still asks for them. */
  readonly attempting = new Set<string>();
  /** The row as last read or written here. It may be stale: a write finds out. */
  known: LockRow | undefined;
  /** The table's time at which the row was as `known` says. */
  knownAt = 0;
  /** Whether a write is in flight. Only one is sent at a time: others of this process would collide with it. */
  busy = false;
  /** The urgency of the most urgent step, including the steps that came while the writer waits for a connection. */
  readonly urgency: { priority: Priority } = { priority: PRIORITIES.acquire };
  learnedAt = performance.now();
  /** The row with which the waiters of this process were last compared, and the time of that. */
  compared: LockRow | undefined;
  comparedAt = -Infinity;

  constructor(resource: string) {
    this.resource = resource;
  }

  /** Makes a decision that has served the queue. */
  decide(context: DecisionContext, row: LockRow = this.known ?? NO_ROW): RowDecision {
    // The clock of this process may be faster than the store's.
    const passed = Math.floor((performance.now() - this.learnedAt) * 900);
    const decision =
      context.now === undefined
        ? new RowDecision(row, this.knownAt, context, passed)
        : new RowDecision(row, context.now(), context);
    decision.serve();
    return decision;
  }

  /** Raises the urgency of the writer to that of one more step. */
  rise(priority: Priority): void {
    if (priority < this.urgency.priority) this.urgency.priority = priority;
  }

  learn(row: LockRow | undefined, at: number): void {
    this.known = row;
    this.knownAt = at;
    this.learnedAt = performance.now();
  }

  /** Forgets the ids of this process that neither hold nor wait. */
  prune(): void {
    if (this.known === undefined) return;
    const { holds, waiters } = this.known;
    // While there are as many entries as ids, the writer stays in any case.
    if (this.own.size <= holds.length + waiters.length) return;
    const known = new Set([...holds, ...waiters].map(({ id }) => id));
    for (const id of this.own) if (!known.has(id)) this.own.delete(id);
  }
}
