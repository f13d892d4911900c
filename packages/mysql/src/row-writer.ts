import { type Call, PRIORITIES, type Priority } from '@locks/core/backend';
import type { Urgency } from './connections.ts';
import { type LockRow, NO_ROW } from './lock-row.ts';
import { type DecisionContext, RowDecision } from './row-decision.ts';

/** One step of the protocol on one resource, to be decided together with those that come in the same moment. */
export interface RowStep {
  readonly call: Call;
  /** `call.now()` before the statement was sent that the step's answer comes from. */
  sentAt: number;
  readonly priority: Priority;
  /** Whether it may add a waiter. */
  readonly enqueues: boolean;
  /** Takes the resource for this acquisition in one statement, where nothing is known of it. Resolves with the row when it did. */
  readonly take:
    | { readonly acquisitionId: string; run(urgency: Urgency): Promise<LockRow | undefined> }
    | undefined;
  /** Takes part in a decision. It may be asked again, for a newer one. */
  decide(decision: RowDecision, ambiguous: boolean): void;
  /** What was decided last is written, or needed no writing. */
  finish(): void;
  fail(error: unknown): void;
}

/** What this process knows of one row, and the steps that wait to be decided on it. */
export class RowWriter {
  readonly resource: string;
  readonly pending: RowStep[] = [];
  /** Ids that hold or wait by this backend object. When the last of them leaves, the writer is forgotten. */
  readonly own = new Set<string>();
  /** Ids that are being abandoned: an attempt of such an id that is still on its way here does nothing. */
  readonly abandoned = new Set<string>();
  /** Ids with an attempt under way here: core still asks for them. */
  readonly attempting = new Set<string>();
  /** The row as last read or written here. Another process may have written since, which a write finds out. */
  known: LockRow | undefined;
  /** The server's time when the row was known to be so. */
  knownAt = 0;
  /** Only one write at a time is sent: others of this process would collide with it. */
  busy = false;
  /** That of the most urgent step, including the steps that came while the writer waits for a connection. */
  readonly urgency: { priority: Priority } = { priority: PRIORITIES.acquire };
  learnedAt = performance.now();
  /** The row with which the waiters of this process were last compared, and when. */
  compared: LockRow | undefined;
  comparedAt = -Infinity;

  constructor(resource: string) {
    this.resource = resource;
  }

  /** A decision that has served the queue. */
  decide(context: DecisionContext, row: LockRow = this.known ?? NO_ROW): RowDecision {
    // The clock of this process may be faster than the server's.
    const passed = Math.floor((performance.now() - this.learnedAt) * 900);
    const decision = new RowDecision(row, this.knownAt, context, passed);
    decision.serve();
    return decision;
  }

  /** Makes the writer as urgent as one more of its steps. */
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
