import type { Call } from '@locks/core/backend';
import { Draft, type Moment } from './draft.ts';
import { absent, type LockState } from './lock-state.ts';

/** One step of the protocol on one resource, to be decided together with those that come in the same moment. */
export interface Step {
  readonly call: Call;
  /** `call.now()` before the statement was sent that the step's answer comes from. */
  sentAt: number;
  /** Whether it may add a place. */
  readonly enqueues: boolean;
  /** Takes the resource in one statement, where nothing is known of it; otherwise undefined. Resolves true when it did. */
  readonly take: (() => Promise<LockState | undefined>) | undefined;
  /** Decides on the draft. It may be asked again, on a newer one. */
  decide(draft: Draft, ambiguous: boolean): void;
  /** What was decided last is written, or needed no writing. */
  settle(): void;
  fail(error: unknown): void;
}

/** What this process knows of one resource, and the steps that wait for it. */
export class Desk {
  readonly resource: string;
  readonly pending: Step[] = [];
  /** Ids that hold or wait by this backend object. With the last of them the desk goes. */
  readonly own = new Set<string>();
  /** Ids that are being given up: an attempt of theirs that is still on its way here does nothing. */
  readonly givenUp = new Set<string>();
  /** Ids with an attempt under way here: core has not gone away from them. */
  readonly attempting = new Set<string>();
  /** As last read or written here. Another process may have written since: a write finds that out. */
  known: LockState | undefined;
  /** The server's time when it was known to be so. */
  knownAt = 0;
  /** One writes at a time: the others of this process would only get in its way. */
  busy = false;
  usedAt = performance.now();

  constructor(resource: string) {
    this.resource = resource;
  }

  draft(moment: Omit<Moment, 'now'>, state: LockState = this.known ?? absent): Draft {
    const { client } = moment;
    const draft = new Draft(state, {
      now: this.knownAt,
      client,
      isAlive: (other) => other === client || moment.isAlive(other),
      isAwaited: (id) => moment.isAwaited(id),
    });
    draft.serve();
    return draft;
  }

  learn(state: LockState | undefined, at: number): void {
    this.known = state;
    this.knownAt = at;
    this.usedAt = performance.now();
  }

  /** Forgets ids that are neither here nor there. */
  prune(): void {
    if (this.own.size === 0 || this.known === undefined) return;
    const there = new Set([...this.known.holds, ...this.known.places].map(({ id }) => id));
    for (const id of this.own) if (!there.has(id)) this.own.delete(id);
  }
}
