import type { WaiterRecord } from './lock-record.ts';

/** The number of ids that are searched for one by one before all are indexed. */
const MAX_SCANS = 4;
/** Unused entries of the list that are tolerated before it is compacted, whatever its length. */
const MIN_UNUSED = 64;

/**
 * The queue of a resource. It reads the list that it was made from and copies that list at the first waiter that comes: a
 * hand-off among ten thousand waiters copies none of them.
 */
export class WaitQueue {
  #list: readonly WaiterRecord[];
  /** `#list`, once it is this queue's own copy and may be changed. */
  #own: WaiterRecord[] | undefined;
  /** Everything in the list before this index has left. */
  #first = 0;
  /** The waiters that left from behind the head; created when the first one leaves. */
  #removed: Set<WaiterRecord> | undefined;
  #byId: Map<string, WaiterRecord> | undefined;
  #scans = 0;

  constructor(waiters: readonly WaiterRecord[]) {
    this.#list = waiters;
  }

  get length(): number {
    return this.#list.length - this.#first - (this.#removed?.size ?? 0);
  }

  get head(): WaiterRecord | undefined {
    for (let head = this.#list[this.#first]; head !== undefined; head = this.#list[this.#first]) {
      if (this.#removed?.delete(head) !== true) return head;
      this.#first += 1;
    }
    return undefined;
  }

  find(id: string): WaiterRecord | undefined {
    const { head } = this;
    if (head === undefined || head.id === id) return head;
    if (this.#byId === undefined && this.#scans < MAX_SCANS) {
      this.#scans += 1;
      return this.#list.find(
        (waiter, index) => waiter.id === id && index > this.#first && this.#removed?.has(waiter) !== true,
      );
    }
    this.#byId ??= new Map(this.toArray().map((waiter) => [waiter.id, waiter]));
    return this.#byId.get(id);
  }

  push(waiter: WaiterRecord): void {
    if (this.#own === undefined) this.replace(this.toArray());
    this.#own?.push(waiter);
    this.#byId?.set(waiter.id, waiter);
  }

  remove(id: string): boolean {
    const waiter = this.find(id);
    if (waiter === undefined) return false;
    if (waiter === this.#list[this.#first]) this.#first += 1;
    else (this.#removed ??= new Set()).add(waiter);
    this.#byId?.delete(id);
    if (this.#list.length - this.length > Math.max(MIN_UNUSED, this.#list.length / 2))
      this.replace(this.toArray());
    return true;
  }

  /** Replaces all waiters by others, or by the same in another order. */
  replace(waiters: readonly WaiterRecord[]): void {
    this.#own = [...waiters];
    this.#list = this.#own;
    this.#first = 0;
    this.#removed = undefined;
    this.#byId = undefined;
  }

  toArray(): readonly WaiterRecord[] {
    const removed = this.#removed;
    const rest = this.#first === 0 ? this.#list : this.#list.slice(this.#first);
    return removed === undefined ? rest : rest.filter((waiter) => !removed.has(waiter));
  }
}
