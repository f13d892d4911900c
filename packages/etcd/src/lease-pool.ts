import type { Call } from '@locks/core/backend';
import type { EtcdPort, AnswerLimit } from './etcd-port.ts';
import type { KeepAliveStream, KeepAliveReply } from './keep-alive-stream.ts';

/** A lease of the server; it serves one lock at a time. */
export interface EtcdLease {
  readonly id: string;
  /** The ttl that was asked for. */
  readonly wantedSeconds: number;
  /** The ttl that the server granted: servers have a minimum. */
  readonly ttlSeconds: number;
  /** The time at which the grant was requested, on the clock of the call that needed the lease. */
  readonly grantedFrom: number;
  /** Whether the lease was granted just now: neither used yet, nor kept for a later use. */
  fresh: boolean;
  /** The earliest time at which the lease may expire, on `performance.now()`. */
  endsAt: number;
  /** Whether the lease was revoked, or a revocation is under way. */
  dropped?: boolean;
}

/** The number of unused leases that are kept; they expire by themselves. */
const MOST_IDLE = 256;
/** The limit of surplus leases that are revoked at a time: thousands must not delay requests that somebody waits for. */
const REVOKED_AT_ONCE = 4;
const REVOKE_MS = 3_000;

/**
 * The leases of one backend. A released lease serves the next lock with the same ttl, so that a lock costs two calls and
 * not three. A lease is used again only if every request that named it was answered: a late request could write with it.
 */
export class LeasePool {
  readonly #port: EtcdPort;
  readonly #keepAlive: KeepAliveStream;
  readonly #idle = new Map<number, EtcdLease[]>();
  readonly #preparing = new Set<number>();
  #count = 0;
  #surplus: EtcdLease[] = [];
  #revoking = 0;

  constructor(port: EtcdPort, keepAlive: KeepAliveStream) {
    this.#port = port;
    this.#keepAlive = keepAlive;
  }

  async take(ttlMs: number, call: Call): Promise<EtcdLease> {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const idle = this.#idle.get(wantedSeconds);
    for (let lease = idle?.pop(); lease !== undefined; lease = idle?.pop()) {
      this.#count -= 1;
      if (isUsable(lease)) return lease;
    }
    return await this.grant(ttlMs, call);
  }

  /** Gets a lease ready for a waiter, so that the hand-off does not wait for a grant. */
  prepare(ttlMs: number, call: Call): void {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const [newest] = this.#idle.get(wantedSeconds)?.slice(-1) ?? [];
    if (this.#preparing.has(wantedSeconds) || (newest !== undefined && isUsable(newest))) return;
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
    const grantedFrom = call.now();
    const sentAt = performance.now();
    const { id, ttlSeconds } = await this.#port.leaseGrant(wantedSeconds, call);
    return { id, wantedSeconds, ttlSeconds, grantedFrom, fresh: true, endsAt: sentAt + ttlSeconds * 1_000 };
  }

  release(lease: EtcdLease): void {
    if (lease.dropped === true) return;
    lease.fresh = false;
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
    const sentAt = performance.now();
    const renewed = await this.#keepAlive.renew(lease.id);
    if (renewed.ttlSeconds > 0) lease.endsAt = Math.max(lease.endsAt, sentAt + renewed.ttlSeconds * 1_000);
    return renewed;
  }

  /** Revokes the unused leases: the process may end. */
  async close(limitMs: number): Promise<void> {
    const all = [...this.#idle.values()].flat();
    this.#surplus = [];
    this.forgetIdle();
    const live = all.filter(({ endsAt }) => endsAt > performance.now());
    await Promise.allSettled(live.map(({ id }) => this.#port.leaseRevoke(id, limitMs)));
  }

  /** Revokes surplus leases. Never rejects. */
  async #revokeSurplus(): Promise<void> {
    this.#revoking += 1;
    for (let lease = this.#surplus.pop(); lease !== undefined; lease = this.#surplus.pop()) {
      // Leases that have ended meanwhile need no revocation.
      if (lease.endsAt > performance.now()) await this.revoke(lease, REVOKE_MS).catch(() => {});
    }
    this.#revoking -= 1;
  }

  #forgetEnded(): void {
    const now = performance.now();
    this.#count = 0;
    for (const [wantedSeconds, all] of this.#idle) {
      const live = all.filter(({ endsAt }) => endsAt > now);
      this.#count += live.length;
      if (live.length > 0) this.#idle.set(wantedSeconds, live);
      else this.#idle.delete(wantedSeconds);
    }
  }
}

/** Whether a lease is not about to expire. */
function isUsable({ endsAt, ttlSeconds }: EtcdLease): boolean {
  return endsAt - performance.now() > 100 * ttlSeconds;
}
