import { type Call, CombinedClock } from '@locks/core/backend';
import type { EtcdPort, AnswerLimit } from './etcd-port.ts';
import type { KeepAliveStream, KeepAliveReply } from './keep-alive-stream.ts';

/** A lease of the server; it serves one lock at a time. */
export interface EtcdLease {
  readonly id: string;
  /** The ttl that was asked for. */
  readonly wantedSeconds: number;
  /** The ttl that the server granted: servers have a minimum. */
  readonly ttlSeconds: number;
  /**
   * The last answer that gave the lease its whole ttl: when its request was sent, on the pool's clock, and the term under which it
   * counts. A grant counts under every term, since each leader knows it from the log.
   */
  renewed: { readonly sentAt: number; readonly raftTerm: number };
  /** Whether the lease was revoked, or a revocation is under way. */
  dropped: boolean;
}

/** The number of unused leases that are kept; they expire by themselves. */
const MOST_IDLE = 256;
/**
 * The part of its ttl for which a renewed lease is used without another keep-alive: as much as the holder's margin, so that one keep-alive
 * serves hundreds of short locks (docs/spec.md §1.2).
 */
export const RECENT_SHARE = 0.01;
/** The part of its ttl after which an unused lease is left to expire. */
const USABLE_SHARE = 0.9;
/** The limit of surplus leases that are revoked at a time: thousands must not delay requests that somebody waits for. */
const REVOKED_AT_ONCE = 4;
const REVOKE_MS = 3_000;

/**
 * The leases of one backend. A released lease serves the next lock with the same ttl, so that a lock costs two calls and
 * not four. A lease is used again only if every request that named it was answered: a late request could write with it.
 */
export class LeasePool {
  readonly #port: EtcdPort;
  readonly #keepAlive: KeepAliveStream;
  readonly #idle = new Map<number, EtcdLease[]>();
  readonly #preparing = new Set<number>();
  readonly #clock = new CombinedClock();
  #count = 0;
  #surplus: EtcdLease[] = [];
  #revoking = 0;

  constructor(port: EtcdPort, keepAlive: KeepAliveStream) {
    this.#port = port;
    this.#keepAlive = keepAlive;
  }

  async take(ttlMs: number, call: Call): Promise<EtcdLease> {
    return this.takeIdle(ttlMs) ?? (await this.grant(ttlMs, call));
  }

  takeIdle(ttlMs: number): EtcdLease | undefined {
    const idle = this.#idle.get(Math.ceil(ttlMs / 1_000));
    for (let lease = idle?.pop(); lease !== undefined; lease = idle?.pop()) {
      this.#count -= 1;
      if (this.isYounger(lease, USABLE_SHARE)) return lease;
    }
    return undefined;
  }

  /** Gets a lease ready for a waiter, so that the hand-off does not wait for a grant. */
  prepare(ttlMs: number, call: Call): void {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const [newest] = this.#idle.get(wantedSeconds)?.slice(-1) ?? [];
    if (this.#preparing.has(wantedSeconds) || (newest !== undefined && this.isYounger(newest, USABLE_SHARE)))
      return;
    this.#preparing.add(wantedSeconds);
    this.grant(ttlMs, call)
      .then((lease) => this.release(lease))
      .catch(() => {
        // An error is ignored here: the claim asks for a lease again, and reports the error.
      })
      .finally(() => this.#preparing.delete(wantedSeconds));
  }

  async grant(ttlMs: number, call: Call): Promise<EtcdLease> {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const renewed = { sentAt: this.#clock.now(), raftTerm: Number.POSITIVE_INFINITY };
    const { id, ttlSeconds } = await this.#port.leaseGrant(wantedSeconds, call);
    return { id, wantedSeconds, ttlSeconds, renewed, dropped: false };
  }

  /** The time since the last answered renewal was sent. A machine that slept adds its sleep (docs/spec.md §1.1). */
  ageOf({ renewed }: EtcdLease): number {
    return this.#clock.now() - renewed.sentAt;
  }

  /** Whether the lease was renewed within this part of its ttl. */
  isYounger(lease: EtcdLease, share: number): boolean {
    return this.ageOf(lease) <= share * lease.ttlSeconds * 1_000;
  }

  release(lease: EtcdLease): void {
    if (lease.dropped) return;
    if (this.#count >= MOST_IDLE) this.#forgetEnded();
    if (this.#count >= MOST_IDLE) {
      lease.dropped = true;
      this.#surplus.push(lease);
      if (this.#revoking < REVOKED_AT_ONCE) void this.#revokeSurplus();
      return;
    }
    this.#count += 1;
    const idle = this.#idle.get(lease.wantedSeconds);
    if (idle === undefined) this.#idle.set(lease.wantedSeconds, [lease]);
    else idle.push(lease);
  }

  /** Forgets all unused leases, after one of them was gone before its time: the others may be gone, too. */
  forgetIdle(): void {
    this.#idle.clear();
    this.#count = 0;
  }

  /** Revokes an unused lease without waiting. If the revocation fails, the lease expires. */
  drop(lease: EtcdLease): void {
    this.revoke(lease, lease.ttlSeconds * 1_000).catch(() => {});
  }

  /** Ends a lease; afterwards no request that names it can write. */
  async revoke(lease: EtcdLease, limit: AnswerLimit): Promise<void> {
    lease.dropped = true;
    await this.#port.leaseRevoke(lease.id, limit);
  }

  async renew(lease: EtcdLease): Promise<KeepAliveReply> {
    const sentAt = this.#clock.now();
    const { ttlSeconds, raftTerm } = await this.#keepAlive.renew(lease.id);
    if (ttlSeconds > 0) lease.renewed = { sentAt, raftTerm };
    return { ttlSeconds, raftTerm };
  }

  /** Revokes the unused leases: the process may end. */
  async close(limitMs: number): Promise<void> {
    const all = [...this.#idle.values()].flat();
    this.#surplus = [];
    this.forgetIdle();
    const live = all.filter((lease) => this.isYounger(lease, 1));
    await Promise.allSettled(live.map(({ id }) => this.#port.leaseRevoke(id, limitMs)));
  }

  /** Revokes surplus leases. Never rejects. */
  async #revokeSurplus(): Promise<void> {
    this.#revoking += 1;
    for (let lease = this.#surplus.pop(); lease !== undefined; lease = this.#surplus.pop()) {
      // Leases that have ended meanwhile need no revocation.
      if (this.isYounger(lease, 1)) await this.revoke(lease, REVOKE_MS).catch(() => {});
    }
    this.#revoking -= 1;
  }

  #forgetEnded(): void {
    this.#count = 0;
    for (const [wantedSeconds, all] of this.#idle) {
      const live = all.filter((lease) => this.isYounger(lease, 1));
      this.#count += live.length;
      if (live.length > 0) this.#idle.set(wantedSeconds, live);
      else this.#idle.delete(wantedSeconds);
    }
  }
}

/** A lease that another client was granted, of which nothing is known. */
export function foreignLease(id: string, seconds: number): EtcdLease {
  const renewed = { sentAt: Number.NEGATIVE_INFINITY, raftTerm: 0 };
  return { id, wantedSeconds: seconds, ttlSeconds: seconds, renewed, dropped: false };
}
