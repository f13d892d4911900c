import type { Grant, LockBackend, LossReason, RenewalStatus, RenewItem } from '../backend/types.ts';
import { CombinedClock } from '../lifetime/clock.ts';
import { LeaseMonitor } from '../lifetime/lease-monitor.ts';
import { endOf, type LeaseOwner, type LeaseState } from '../lifetime/lease-state.ts';
import { renewalStatusOf } from '../lifetime/renewal-status.ts';
import { Protocol } from '../protocol.ts';
import type { FromThread, ToThread } from './messages.ts';
import {
  COUNTED_FROM,
  HELD,
  LOST,
  MAIN_BEAT,
  NS_PER_MS,
  REASON,
  REASONS,
  RELEASE_ANSWERED,
  RELEASE_SENT,
  RELEASING,
  STATE,
  UNCONFIRMED,
} from './shared-lease.ts';
import type { ThreadClock } from './thread-clock.ts';

/** How long the event loop has for the answer to its release before the thread sends one, too, in milliseconds. */
const RELEASE_MS = 100;

const ENDED_MEANWHILE = new Error('the event loop has ended the renewal');

/** A lease that the thread keeps. */
interface Entry {
  readonly id: number;
  readonly grant: Grant;
  readonly cells: BigInt64Array;
  lease: LeaseState | undefined;
  /** How many renewals have no answer yet. */
  underWay: number;
  /** When the last renewal was sent, and the last confirmed one, in nanoseconds. */
  sentAt: bigint;
  confirmedAt: bigint;
  /** Called when no renewal is under way any more. */
  onSettled: (() => void) | undefined;
}

/** Renews, in the thread, the leases that the event loop has given to it: by core's own monitor, on a backend of its own. */
export class LeaseKeeper implements LeaseOwner {
  readonly backendName: string;
  readonly protocol: Protocol;
  readonly #monitor: LeaseMonitor;
  readonly #backend: LockBackend;
  readonly #threadClock: ThreadClock;
  readonly #clock = new CombinedClock();
  readonly #cells: BigInt64Array;
  readonly #maxBlockedMs: number;
  readonly #post: (message: FromThread) => void;
  readonly #entries = new Map<number, Entry>();
  readonly #byGrant = new Map<Grant, Entry>();

  constructor(
    backend: LockBackend,
    threadClock: ThreadClock,
    cells: BigInt64Array,
    maxBlockedMs: number,
    post: (message: FromThread) => void,
  ) {
    this.backendName = backend.name;
    this.#backend = backend;
    this.#threadClock = threadClock;
    this.#cells = cells;
    this.#maxBlockedMs = maxBlockedMs;
    this.#post = post;
    const { name, capabilities } = backend;
    const renew: LockBackend['renew'] = (items, call) => this.#renew(items, call);
    this.protocol = new Protocol({ name, capabilities, renew } as LockBackend, this.#clock);
    this.#monitor = new LeaseMonitor(this.protocol, this.#clock);
  }

  now(): number {
    return this.#clock.now();
  }

  blockedMs(now: number): number {
    return this.#monitor.blockedMs(now);
  }

  /** The shortest ttl of its leases; `Infinity` for none. */
  get shortestMs(): number {
    let shortestMs = Number.POSITIVE_INFINITY;
    for (const { lease } of this.#entries.values())
      if (lease !== undefined) shortestMs = Math.min(shortestMs, lease.ttlMs);
    return shortestMs;
  }

  receive(message: Exclude<ToThread, { readonly op: 'clock' }>): void {
    switch (message.op) {
      case 'keep':
        return this.#keep(message);
      case 'end':
      case 'release': {
        const { id } = message;
        const entry = this.#entries.get(id);
        if (entry !== undefined) this.#forget(entry);
        if (message.op === 'release') return entry && this.#releaseLater(entry);
        if (!message.isAwaited) return;
        const settled = (): void => this.#post({ op: 'settled', id });
        if (entry === undefined || entry.underWay === 0) return settled();
        entry.onSettled = settled;
        return;
      }
      default:
        return message satisfies never;
    }
  }

  leaseLost({ grant }: LeaseState, reason: LossReason): void {
    const entry = this.#byGrant.get(grant);
    if (entry === undefined) return;
    this.#forget(entry);
    const { id, cells } = entry;
    // The end by time is for the clock of the event loop to tell: this one may have gained what that one has not.
    if (reason === 'expired' || reason === 'unconfirmed') return this.#post({ op: 'dropped', id });
    Atomics.store(cells, REASON, BigInt(REASONS.indexOf(reason)));
    // What the event loop has ended meanwhile is no loss any more.
    if (Atomics.compareExchange(cells, STATE, HELD, LOST) === HELD) this.#post({ op: 'lost', id, reason });
  }

  #keep({ id, grant, ttlMs, renewForMs, cells }: Extract<ToThread, { readonly op: 'keep' }>): void {
    const ageMs = Number(this.#threadClock.now() - Atomics.load(cells, COUNTED_FROM)) / NS_PER_MS;
    const now = this.#clock.now();
    const entry: Entry = {
      ...{ id, grant, cells, lease: undefined, underWay: 0 },
      ...{ sentAt: 0n, confirmedAt: 0n, onSettled: undefined },
    };
    this.#entries.set(id, entry);
    this.#byGrant.set(grant, entry);
    const options = { ttlMs, autoRenew: true, maxHoldMs: renewForMs } as const;
    entry.lease = this.#monitor.start(this, grant, options, now, {
      countedFrom: now - ageMs,
      validForMs: ttlMs,
    });
    if (entry.lease !== undefined) return;
    this.#forget(entry);
    this.#post({ op: 'dropped', id });
  }

  /** Nothing renews the lease from here on (docs/spec.md §4.1). */
  #forget(entry: Entry): void {
    this.#entries.delete(entry.id);
    this.#byGrant.delete(entry.grant);
    if (entry.lease === undefined) return;
    entry.lease.released = true;
    this.#monitor.remove(entry.lease);
  }

  /** The event loop sends the release. Where it stands still before it could, the thread sends it, too (docs/spec.md §20.8). */
  #releaseLater({ grant, cells }: Entry): void {
    setTimeout(() => {
      if (Atomics.compareExchange(cells, STATE, RELEASING, RELEASE_SENT) !== RELEASING) return;
      const now = (): number => this.#clock.now();
      const answered = (): void => void Atomics.store(cells, STATE, RELEASE_ANSWERED);
      // Without an answer the lease ends by its ttl.
      this.#backend.release(grant, { now, deadline: now() + grant.request.ttlMs }).then(answered, () => {});
    }, RELEASE_MS);
  }

  async #renew(
    items: readonly RenewItem[],
    call: Parameters<LockBackend['renew']>[1],
  ): Promise<readonly RenewalStatus[]> {
    const sentAt = this.#threadClock.now();
    // A process whose event loop never comes back must not hold its locks for ever (docs/spec.md §20.2).
    const silentMs = Number(sentAt - Atomics.load(this.#cells, MAIN_BEAT)) / NS_PER_MS;
    if (silentMs > this.#maxBlockedMs) {
      const error = new Error(`the event loop has been silent for ${silentMs} ms`);
      return items.map(() => ({ status: 'unknown', error }));
    }
    const answer: RenewalStatus[] = items.map(() => ({ status: 'unknown', error: ENDED_MEANWHILE }));
    const sent: [index: number, entry: Entry, item: RenewItem][] = [];
    for (const [index, item] of items.entries()) {
      const entry = this.#byGrant.get(item.grant);
      if (entry === undefined) continue;
      // The event loop first writes that the renewal has ended, and then reads whether one is under way. In this order, and in that one,
      // it learns of each renewal that is sent (docs/spec.md §20.5).
      Atomics.store(entry.cells, UNCONFIRMED, 1n);
      if (Atomics.load(entry.cells, STATE) !== HELD) continue;
      entry.underWay += 1;
      entry.sentAt = sentAt;
      sent.push([index, entry, item]);
    }
    if (sent.length === 0) return answer;
    try {
      const given = await this.#backend.renew(
        sent.map(([, , item]) => item),
        call,
      );
      for (const [index, [at, entry, item]] of sent.entries()) {
        const status = forTheTtl(renewalStatusOf(given, index), item.ttlMs);
        answer[at] = status;
        if (status.status === 'held') confirm(entry, sentAt, item, status.validForMs);
      }
      return answer;
    } finally {
      for (const [, entry] of sent) {
        entry.underWay -= 1;
        writeUnconfirmed(entry);
        if (entry.underWay === 0) entry.onSettled?.();
      }
    }
  }
}

/** A renewal without an answer keeps the lease unconfirmed until one that was sent later is confirmed. */
function writeUnconfirmed({ cells, underWay, sentAt, confirmedAt }: Entry): void {
  Atomics.store(cells, UNCONFIRMED, underWay > 0 || sentAt !== confirmedAt ? 1n : 0n);
}

/** Writes what the store has confirmed, which the event loop reads at once. */
function confirm(entry: Entry, sentAt: bigint, { ttlMs }: RenewItem, validForMs = ttlMs): void {
  // A stale answer moves nothing (docs/spec.md §1.7).
  if (sentAt < entry.confirmedAt) return;
  entry.confirmedAt = sentAt;
  // A hold that the store keeps for less than the ttl counts from before.
  const missingMs = Math.max(0, endOf(0, ttlMs) - endOf(0, validForMs));
  Atomics.store(entry.cells, COUNTED_FROM, sentAt - BigInt(Math.ceil(missingMs * NS_PER_MS)));
}

/** A hold that the store keeps for longer than its ttl is renewed by its ttl all the same: the memory has no other end. */
function forTheTtl(status: RenewalStatus, ttlMs: number): RenewalStatus {
  const isLonger = status.status === 'held' && (status.validForMs ?? ttlMs) > ttlMs;
  return isLonger ? { status: 'held' } : status;
}
