import type { Hold } from '../tenure/hold.ts';

/** Who enters: the scopes whose work is calling, innermost first, where core can see them. */
export interface Caller {
  runsInside(scope: Scope): boolean;
}

/** What came of asking for a turn. `closed`: the scope's work settled first, so the caller is a stranger now. */
export type Entry = { readonly status: 'entered'; readonly scope: Scope } | { readonly status: 'closed' };

interface LocalWait {
  readonly target: Scope;
  readonly caller: Caller;
  readonly admit: (entry: Entry) => void;
}

/** Waits on scopes, of all managers: what a cycle is looked for in. */
const localWaits = new Set<LocalWait>();

/**
 * One hold of a lease, and the turn that its children take. Children exclude each other, not the scope's own code
 * (docs/spec.md §5.3).
 */
export class Scope {
  readonly hold: Hold;
  /** The child that has the turn. It keeps it until it has left, with all its own children. */
  #tenant: Scope | undefined;
  #queue: LocalWait[] = [];
  #open = true;
  readonly #whenEmpty: (() => void)[] = [];
  readonly #parent: Scope | undefined;

  constructor(hold: Hold, parent?: Scope) {
    this.hold = hold;
    this.#parent = parent;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** A turn at once, or `undefined` if it must be waited for. */
  tryEnter(): Entry | undefined {
    if (!this.#open) return { status: 'closed' };
    if (this.#tenant !== undefined) return undefined;
    this.hold.count += 1;
    this.#tenant = new Scope(this.hold, this);
    return { status: 'entered', scope: this.#tenant };
  }

  /** Queues for a turn. `cancel` leaves the queue; an entry that was given by then must be left by the caller. */
  queue(caller: Caller): { entry: Promise<Entry>; cancel: () => void } {
    let admit: (entry: Entry) => void = () => {};
    const entry = new Promise<Entry>((resolve) => {
      admit = resolve;
    });
    const wait: LocalWait = { target: this, caller, admit };
    this.#queue.push(wait);
    localWaits.add(wait);
    const cancel = (): void => {
      localWaits.delete(wait);
      this.#queue = this.#queue.filter((other) => other !== wait);
    };
    return { entry, cancel };
  }

  /** Whether `caller` would wait for itself: the tenant's way out leads, over other local waits, back to it. */
  wouldDeadlock(caller: Caller): boolean {
    const seen = new Set<Scope>();
    const blockedBy = (scope: Scope): boolean => {
      const tenant = scope.#tenant;
      if (tenant === undefined || seen.has(tenant)) return false;
      seen.add(tenant);
      if (caller.runsInside(tenant)) return true;
      for (const wait of localWaits) {
        if (wait.caller.runsInside(tenant) && blockedBy(wait.target)) return true;
      }
      return false;
    };
    return blockedBy(this);
  }

  /** The scope's work settled: no new entries, those queued become strangers; resolves when the tenant has left. */
  async close(): Promise<void> {
    this.#open = false;
    this.#dismissQueue();
    if (this.#tenant === undefined) return;
    await new Promise<void>((resolve) => {
      // Both the handle's release and the end of its work may wait for it.
      this.#whenEmpty.push(resolve);
    });
  }

  /** Also when the lease is lost: then nobody may come in any more, however deep. */
  closeToEntries(): void {
    this.#open = false;
    this.#tenant?.closeToEntries();
    this.#dismissQueue();
  }

  /** This child's handle was given up: it leaves as soon as its own children have. */
  leaveWhenEmpty(): void {
    if (this.#tenant === undefined) {
      this.closeToEntries();
      this.leave();
    } else {
      void this.close().then(() => this.leave());
    }
  }

  /** This child is done: the turn goes to the next. */
  leave(): void {
    const parent = this.#parent;
    if (parent === undefined || parent.#tenant !== this) return;
    parent.#tenant = undefined;
    const next = parent.#queue.shift();
    if (next !== undefined) {
      localWaits.delete(next);
      next.admit(parent.tryEnter() ?? { status: 'closed' });
      return;
    }
    if (!parent.#open) for (const tell of parent.#whenEmpty.splice(0)) tell();
  }

  #dismissQueue(): void {
    for (const wait of this.#queue.splice(0)) {
      localWaits.delete(wait);
      wait.admit({ status: 'closed' });
    }
  }
}
