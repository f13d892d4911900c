// One file, since each rule depends on what every other one leaves of the resource.
import { areInConflict, Capacity, holdsAlone } from '../backend/modes.ts';
import type { AcquireRequest, LockMode, RenewalStatus } from '../backend/types.ts';
import type { HoldRecord, LockRecord, WaiterRecord } from './lock-record.ts';
import { WaitQueue } from './wait-queue.ts';

/** Answers about clients for the rules. Without the methods every client lives, and the waiters of all clients are served. */
export interface RulesContext {
  /** The backend object for which the steps are decided. */
  readonly client: string;
  /** Whether a client lives. */
  isAlive?(client: string): boolean;
  /**
   * Whether these steps may grant to waiters of a client. When the head of the queue is such that they may not, the resource
   * stays free for it to take.
   */
  serves?(client: string): boolean;
}

/** The outcome of an attempt. */
export type Attempted =
  | {
      readonly status: 'granted';
      /** The hold that was given, or that the acquisition had. */
      readonly hold: HoldRecord;
      /** The time left of a hold that an earlier attempt was granted, in the unit of the store's clock. */
      readonly left?: number;
    }
  | {
      readonly status: 'contended';
    }
  | {
      readonly status: 'full';
      /** Whether as many wait as the request's `maxWaiters`, or the record cannot keep one more that holds or waits. */
      readonly reason: 'reachedMaxWaiters' | 'recordHasNoRoom';
    }
  | {
      readonly status: 'conflict';
      /** A mode that lives on the resource and excludes the one that was asked for, whoever leaves. */
      readonly with: LockMode;
    };

/** The parts of a request that {@link LockRules.attempt} reads. */
export type RulesRequest = Pick<
  AcquireRequest,
  'acquisitionId' | 'mode' | 'label' | 'steal' | 'adopts' | 'maxWaiters'
>;

const NO_IDS: readonly string[] = [];

/** The last token: a number above it may be the same as the next one. */
const LAST_TOKEN = Number.MAX_SAFE_INTEGER;

type PermitMode = Extract<LockMode, { kind: 'permit' }>;

/**
 * The rules of a lock (docs/spec.md §15 and §17), applied to a copy of one resource's state: no I/O, no clock of its own. A
 * store reads a {@link LockRecord}, calls `expire` with its time and `serve`, takes any number of steps, writes what `token`,
 * `holds` and `waiters` give then, all at once or not at all, and calls `commit` with the time of that write.
 *
 * @example
 * ```ts
 * import { type LockRecord, LockRules } from '@locks/core/rules';
 *
 * export function recordAfterRelease(record: LockRecord, acquisitionId: string, now: number): LockRecord {
 *   const rules = new LockRules(record, { client: 'worker-1' });
 *   rules.expire(now);
 *   rules.serve();
 *   rules.release(acquisitionId);
 *   rules.commit(now);
 *   const { token, holds, waiters } = rules;
 *   return { token, holds, waiters };
 * }
 * ```
 */
export class LockRules {
  /** The highest fencing token that was given out. */
  token: number;
  /** Whether a step did something that must be written. */
  changed = false;
  /** Whether a step added a waiter. */
  hasEnqueued = false;
  /** The holds granted to waiters since the caller emptied this list; each counts as stored then. */
  readonly handedOff: HoldRecord[] = [];
  /** The waiters of these holds, as they stood in the queue. */
  readonly #served = new WeakMap<HoldRecord, WaiterRecord>();
  readonly #context: RulesContext;
  readonly #holds = new Map<string, HoldRecord>();
  readonly #queue: WaitQueue;
  /** Waiters that get their times at the commit. */
  #uncommitted: WaiterRecord[] = [];
  /** Ids whose time was over at the last `expire`. */
  #expired = NO_IDS;
  #now = -Infinity;
  /** The capacity beside the holds; counted again when it is read after a hold ended. */
  #capacity: Capacity | undefined;

  constructor(record: LockRecord, context: RulesContext) {
    this.token = record.token;
    this.#context = context;
    for (const hold of record.holds) this.#holds.set(hold.id, { ...hold });
    this.#queue = new WaitQueue(record.waiters);
  }

  /** The holds, in the order of the grants. */
  get holds(): readonly HoldRecord[] {
    return [...this.#holds.values()];
  }

  /** The waiters, in the order in which they are served. */
  get waiters(): readonly WaiterRecord[] {
    return this.#queue.toArray();
  }

  /** The number of waiters. */
  get waiting(): number {
    return this.#queue.length;
  }

  /**
   * Whether no token is left for one more grant. Only a record that something else has written comes so far: the waiters keep their
   * places, and an attempt must not be made.
   */
  get hasNoToken(): boolean {
    return this.token >= LAST_TOKEN;
  }

  /** Whether nobody holds and nobody waits. */
  get isIdle(): boolean {
    return this.#holds.size + this.#queue.length === 0;
  }

  /** The time that was given to `expire`. */
  get now(): number {
    return this.#now;
  }

  /** The earliest end of a hold, of those whose ends are known. */
  get nextEnd(): number {
    let next = Infinity;
    for (const { until = Infinity } of this.#holds.values()) next = Math.min(next, until);
    return next;
  }

  /** The hold of an acquisition; `undefined` where it holds nothing. */
  holdOf(id: string): HoldRecord | undefined {
    return this.#holds.get(id);
  }

  /** Whether an acquisition waits. */
  isQueued(id: string): boolean {
    return this.#queue.find(id) !== undefined;
  }

  /** Ends holds whose time is over, and removes waiters of dead clients. The steps that follow are decided as of `now`. */
  expire(now: number): void {
    this.#now = now;
    let expired: string[] | undefined;
    for (const { id, until = Infinity } of this.#holds.values()) {
      if (until > now) continue;
      (expired ??= []).push(id);
      this.#holds.delete(id);
      this.#capacity = undefined;
    }
    this.#expired = expired ?? NO_IDS;
    const { isAlive } = this.#context;
    if (isAlive === undefined) return;
    const { waiters } = this;
    const dead = new Set<string>();
    let lastAlive: string | undefined;
    for (const { client } of waiters) {
      // Most often the neighbours in a queue are of one client.
      if (client === lastAlive) continue;
      if (isAlive(client)) lastAlive = client;
      else dead.add(client);
    }
    if (dead.size > 0) this.#queue.replace(waiters.filter(({ client }) => !dead.has(client)));
  }

  /** Grants to the head of the queue, and to the next, for as long as they fit: nobody overtakes (docs/spec.md §15.2). */
  serve(): void {
    for (let { next } = this; next !== undefined; { next } = this) {
      if (this.hasNoToken) return;
      if (this.#context.serves?.(next.client) === false) return;
      this.#queue.remove(next.id);
      const hold = this.#grant(next, false);
      this.handedOff.push(hold);
      this.#served.set(hold, next);
    }
  }

  /**
   * Takes back what this decision has granted to waiters: who ends the holds of others means those that the store has, and a waiter
   * keeps its place.
   */
  #takeBack(): void {
    const served = this.handedOff.splice(0).filter((hold) => this.#holds.get(hold.id) === hold);
    if (served.length === 0) return;
    for (const { id } of served) this.#holds.delete(id);
    this.#capacity = undefined;
    const waiters = served.map((hold) => {
      const waiter = this.#served.get(hold) as WaiterRecord;
      // The limit of its permits may have been changed meanwhile.
      return waiter.mode === hold.mode ? waiter : this.#uncommit({ ...waiter, mode: hold.mode });
    });
    this.#queue.replace([...waiters, ...this.waiters]);
  }

  /**
   * Attempts a request; idempotent by acquisition id (docs/spec.md §2.1). `enqueue`: whether the acquisition waits where it
   * cannot be granted now.
   *
   * @throws RangeError where it would be granted and {@link hasNoToken}: the state is not to be used any more
   */
  attempt(request: RulesRequest, ttl: number, enqueue: boolean): Attempted {
    const { acquisitionId: id, mode, label } = request;
    const held = this.#holds.get(id);
    if (held !== undefined) return attemptedAgain(held, this.#now);
    const { client } = this.#context;
    const waiter: WaiterRecord = { id, mode, label, client, ttl, since: undefined };
    if (request.steal === true) return this.#steal(waiter);
    // The former holder does not believe any more, and no other acquisition may have its hold (docs/spec.md §19.2).
    if (request.adopts !== undefined)
      return this.#isExclusive(request.adopts) ? this.#steal(waiter) : { status: 'contended' };
    if (this.isQueued(id)) return { status: 'contended' };
    const conflict = this.conflictWith(mode);
    if (conflict !== undefined) return { status: 'conflict', with: conflict };
    const admitted = this.admits(mode);
    if (!admitted && !enqueue) return { status: 'contended' };
    if (!admitted && this.waiting >= (request.maxWaiters ?? Infinity))
      return { status: 'full', reason: 'reachedMaxWaiters' };
    if (!this.hasRoomFor(waiter)) return { status: 'full', reason: 'recordHasNoRoom' };
    if (admitted) return { status: 'granted', hold: this.#grant(waiter, false) };
    this.#queue.push(this.#uncommit(waiter));
    this.hasEnqueued = true;
    return { status: 'contended' };
  }

  /** Makes the acquisition neither hold nor wait, whichever it did. */
  abandon(id: string): void {
    if (this.#queue.remove(id)) this.changed = true;
    this.#end(id);
    // A waiter that could not be served held back those behind it.
    this.serve();
  }

  /** Ends the hold of this acquisition, and no other (docs/spec.md §3.1). Returns the ended hold. */
  release(id: string): HoldRecord | undefined {
    const ended = this.#end(id);
    this.serve();
    return ended;
  }

  /** Ends the hold of this acquisition, or all holds, whoever has them (docs/spec.md §14.3). Returns the ended holds. */
  forceRelease(id: string | undefined): readonly HoldRecord[] {
    this.#takeBack();
    const ids = id === undefined ? [...this.#holds.keys()] : [id];
    const ended = ids.flatMap((each) => this.#end(each) ?? []);
    this.serve();
    return ended;
  }

  /** Lets the hold last `ttl` from the commit on, and never recreates what is absent (docs/spec.md §1.5). */
  renew(id: string, token: number, ttl: number): RenewalStatus {
    const hold = this.#holds.get(id);
    // A hold with another token is another grant: the grant that is renewed has ended.
    if (hold === undefined || hold.token !== token) return this.#lost(id, token);
    this.#extend(hold, ttl);
    return { status: 'held' };
  }

  /** Turns an exclusive hold into a shared one, and serves the readers who wait (docs/spec.md §15.4). */
  downgrade(id: string, token: number): RenewalStatus {
    const hold = this.#holds.get(id);
    if (hold === undefined) return this.#lost(id, token);
    if (hold.mode.kind === 'exclusive') {
      hold.mode = { kind: 'shared' };
      this.#capacity = undefined;
      this.changed = true;
      this.serve();
    }
    return { status: 'held' };
  }

  /**
   * Sets the limit of all permits; a lower one ends no hold (docs/spec.md §15.7). Returns a mode on the resource that is no
   * permit, if there is one.
   */
  resize(limit: number): LockMode | undefined {
    const all = [...this.#holds.values(), ...this.waiters];
    const other = all.find(({ mode }) => mode.kind !== 'permit');
    if (other !== undefined) return other.mode;
    if (all.some(({ mode }) => (mode as PermitMode).limit !== limit)) {
      for (const hold of this.#holds.values()) hold.mode = { ...(hold.mode as PermitMode), limit };
      const resized = this.waiters.map((waiter) => ({
        ...waiter,
        mode: { ...(waiter.mode as PermitMode), limit },
      }));
      this.#queue.replace(resized.map((waiter) => this.#uncommit(waiter)));
      this.changed = true;
    }
    this.serve();
    return undefined;
  }

  /** Records that the decision is in the store since `at`: leases that it grants or renews are counted from that time. */
  commit(at: number): void {
    for (const hold of this.#holds.values()) {
      hold.since ??= at;
      if (hold.span !== undefined) hold.until = at + hold.span;
      hold.span = undefined;
    }
    for (const waiter of this.#uncommitted) waiter.since ??= at;
    if (this.#uncommitted.length > 0) this.#uncommitted = [];
  }

  /** Whether a newcomer may enter now: free capacity belongs to the waiters first (docs/spec.md §7.4). */
  admits(mode: LockMode): boolean {
    return this.#queue.length === 0 && this.fits(mode);
  }

  /** The waiter whose turn it is. A head that does not fit holds back all behind it (docs/spec.md §15.2). */
  get next(): WaiterRecord | undefined {
    const { head } = this.#queue;
    return head !== undefined && this.fits(head.mode) ? head : undefined;
  }

  /** Whether a mode may hold beside those who hold now (docs/spec.md §15.1, §15.5). */
  fits(mode: LockMode): boolean {
    this.#capacity ??=
      this.#holds.size === 0 ? new Capacity() : Capacity.beside(this.holds.map((hold) => hold.mode));
    return this.#capacity.fits(mode);
  }

  /** A mode that lives here and that `mode` contradicts (docs/spec.md §15.7). */
  conflictWith(mode: LockMode): LockMode | undefined {
    const [first] = this.#holds.values();
    const living = (first ?? this.#queue.head)?.mode;
    return living !== undefined && areInConflict(living, mode) ? living : undefined;
  }

  /** Whether the store can keep one more. A store with a limit overrides this. */
  hasRoomFor(_waiter: WaiterRecord): boolean {
    return true;
  }

  #extend(hold: HoldRecord, ttl: number): void {
    hold.span = ttl;
    hold.until = undefined;
    this.changed = true;
  }

  /** Ends every hold, and grants ahead of the queue (docs/spec.md §17.1). */
  #steal(waiter: WaiterRecord): Attempted {
    this.#takeBack();
    const waiting = this.#queue.head?.mode;
    // A steal ends holds but removes no waiters, so a waiter may be in conflict with it (docs/spec.md §17.2).
    if (waiting !== undefined && areInConflict(waiting, waiter.mode)) {
      this.serve();
      return { status: 'conflict', with: waiting };
    }
    this.#queue.remove(waiter.id);
    this.#holds.clear();
    this.#capacity = undefined;
    const hold = this.#grant(waiter, true);
    // A reader that steals shares with the readers at the head of the queue (docs/spec.md §15.2).
    this.serve();
    return { status: 'granted', hold };
  }

  #grant({ id, mode, label, ttl: span }: WaiterRecord, stolen: boolean): HoldRecord {
    // A token that was given out before would let a late writer pass (docs/spec.md §6.1).
    if (this.hasNoToken) throw new RangeError('no fencing token is left');
    // Every grant has a higher token than all before it, of whatever mode (docs/spec.md §15.8).
    const token = ++this.token;
    const hold: HoldRecord = { id, mode, label, token, since: undefined, until: undefined, span, stolen };
    this.#holds.set(id, hold);
    if (this.#capacity?.take(mode) !== true) this.#capacity = undefined;
    this.changed = true;
    return hold;
  }

  #isExclusive(id: string): boolean {
    const hold = this.#holds.get(id);
    return hold !== undefined && holdsAlone(hold.mode);
  }

  #end(id: string): HoldRecord | undefined {
    const hold = this.#holds.get(id);
    if (hold === undefined) return undefined;
    this.#holds.delete(id);
    // The capacity is adjusted, not counted again: thousands of readers may leave together.
    this.#capacity = this.#holds.size === 0 ? undefined : this.#capacity?.without(hold.mode);
    this.changed = true;
    return hold;
  }

  #uncommit(waiter: WaiterRecord): WaiterRecord {
    this.#uncommitted.push(waiter);
    this.changed = true;
    return waiter;
  }

  #lost(id: string, token: number): RenewalStatus {
    const isTakenOver = this.holds.some(
      ({ mode, stolen, token: other }) => holdsAlone(mode) || (stolen && other > token),
    );
    if (isTakenOver) return { status: 'lost', reason: 'taken-over' };
    return { status: 'lost', reason: this.#expired.includes(id) ? 'expired' : 'force-released' };
  }
}

/** The answer to a repeated attempt. `left` is the time left of a hold from before this step. */
function attemptedAgain(hold: HoldRecord, now: number): Attempted {
  if (hold.span !== undefined) return { status: 'granted', hold };
  return { status: 'granted', hold, left: (hold.until ?? now) - now };
}
