import { processWide } from '../process-wide.ts';
import { shownLease } from '../protocol.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';

/** The code that enters, known by the scopes around it as far as core can see them. */
export interface Caller {
  runsInside(scope: Scope): boolean;
}

/** The outcome of waiting for a turn. `closed`: the scope's work ended first, so the caller is a stranger now. */
export type ScopeEntry =
  | { readonly status: 'entered'; readonly scope: Scope }
  | { readonly status: 'closed' };

interface ScopeWait {
  readonly target: Scope;
  readonly caller: Caller;
  readonly admit: (entry: ScopeEntry) => void;
}

/** The waits on scopes, of all managers and copies of core: `wouldDeadlock` looks for a cycle in them. */
let scopes = 0;

const scopeWaits = processWide('local-waits@1', () => new Set<ScopeWait>());

/**
 * The code that runs under one handle of a lease, and the turns that its children take. Children exclude each other, not the
 * scope's own code (docs/spec.md §5.3).
 */
export class Scope {
  readonly lease: LeaseState;
  /** The child whose turn it is, until it has left with all its own children. */
  activeChild: Scope | undefined;
  #queue: ScopeWait[] = [];
  #open = true;
  readonly #onEmpty: (() => void)[] = [];
  readonly #parent: Scope | undefined;
  readonly #number = (scopes += 1);

  constructor(lease: LeaseState, parent: Scope | undefined) {
    this.lease = lease;
    this.#parent = parent;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Takes a turn at once; gives `undefined` if the caller must wait for it. */
  tryEnter(): ScopeEntry | undefined {
    if (!this.#open) return { status: 'closed' };
    if (this.activeChild !== undefined) return undefined;
    this.lease.holdCount += 1;
    this.activeChild = new Scope(this.lease, this);
    this.#tell('enters', this.activeChild);
    return { status: 'entered', scope: this.activeChild };
  }

  /** Queues for a turn. `cancel` leaves the queue; the caller must leave an entry that was given before. */
  queue(caller: Caller): { entry: Promise<ScopeEntry>; cancel: () => void } {
    let admit: (entry: ScopeEntry) => void = () => {};
    const entry = new Promise<ScopeEntry>((resolve) => {
      admit = resolve;
    });
    const wait: ScopeWait = { target: this, caller, admit };
    this.#queue.push(wait);
    scopeWaits.add(wait);
    const cancel = (): void => {
      scopeWaits.delete(wait);
      this.#queue = this.#queue.filter((other) => other !== wait);
    };
    return { entry, cancel };
  }

  /** Whether `caller` would wait for itself: the active child cannot leave before, over other waits, the caller goes on. */
  wouldDeadlock(caller: Caller): boolean {
    const seen = new Set<Scope>();
    const isBlockedBy = (scope: Scope): boolean => {
      const { activeChild } = scope;
      if (activeChild === undefined || seen.has(activeChild)) return false;
      seen.add(activeChild);
      if (caller.runsInside(activeChild)) return true;
      for (const wait of scopeWaits) {
        if (wait.caller.runsInside(activeChild) && isBlockedBy(wait.target)) return true;
      }
      return false;
    };
    return isBlockedBy(this);
  }

  /** Ends entries after the scope's work: queued callers become strangers. Resolves when the active child has left. */
  async close(): Promise<void> {
    this.#open = false;
    this.#dismissQueue();
    if (this.activeChild === undefined) return;
    // The handle's release and the end of its work may both wait.
    await new Promise<void>((resolve) => void this.#onEmpty.push(resolve));
  }

  /** Ends entries at every depth, as when the lease is lost. */
  closeToEntries(): void {
    this.#open = false;
    this.activeChild?.closeToEntries();
    this.#dismissQueue();
  }

  /** Leaves after this child's handle was released, as soon as its own children have left. */
  leaveWhenEmpty(): void {
    if (this.activeChild === undefined) {
      this.closeToEntries();
      this.#leave();
    } else {
      void this.close().then(() => this.#leave());
    }
  }

  /** Passes this child's turn on to the next in the queue. */
  #leave(): void {
    const parent = this.#parent;
    if (parent === undefined || parent.activeChild !== this) return;
    parent.activeChild = undefined;
    parent.#tell('leaves', this);
    const next = parent.#queue.shift();
    if (next !== undefined) {
      scopeWaits.delete(next);
      next.admit(parent.tryEnter() ?? { status: 'closed' });
      return;
    }
    if (!parent.#open) for (const resolve of parent.#onEmpty.splice(0)) resolve();
  }

  #tell(step: 'enters' | 'leaves', child: Scope): void {
    const { owner, grant } = this.lease;
    if (!owner.protocol.isHeard) return;
    owner.protocol.tell({ step, acquisition: shownLease(grant), scope: child.#number, within: this.#number });
  }

  #dismissQueue(): void {
    for (const wait of this.#queue.splice(0)) {
      scopeWaits.delete(wait);
      wait.admit({ status: 'closed' });
    }
  }
}
