import type { Call } from '@locks/core/backend';
import type { EtcdPort, Limit } from './etcd-port.ts';
import type { KeepAlive, Renewed } from './keep-alive.ts';

/** A lease of the server, which holds one lock at a time. */
export interface Lease {
  readonly id: string;
  /** What was asked for. */
  readonly wantedSeconds: number;
  /** What the server granted: servers have a shortest ttl. */
  readonly ttlSeconds: number;
  /** On the clock of the call that it was granted for. */
  readonly grantedFrom: number;
  /** It has not held anything yet, nor waited for its use. */
  fresh: boolean;
  /** When it may have run out, on `performance.now()`. */
  endsAt: number;
  /** It was asked to end. */
  dropped?: boolean;
}

/** So many leases that nobody uses are kept; they run out by themselves. */
const MOST_IDLE = 256;

/**
 * The leases of one backend. One that was given back serves the next lock of the same ttl, so that a lock costs two
 * calls and not three. Only those whose every request was answered come back: a request on its way could write with it.
 */
export class Leases {
  readonly #port: EtcdPort;
  readonly #keepAlive: KeepAlive;
  readonly #idle = new Map<number, Lease[]>();
  readonly #preparing = new Set<number>();
  #count = 0;

  constructor(port: EtcdPort, keepAlive: KeepAlive) {
    this.#port = port;
    this.#keepAlive = keepAlive;
  }

  async take(ttlMs: number, call: Call): Promise<Lease> {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const idle = this.#idle.get(wantedSeconds);
    for (let lease = idle?.pop(); lease !== undefined; lease = idle?.pop()) {
      this.#count -= 1;
      if (isUsable(lease)) return lease;
    }
    return await this.grant(ttlMs, call);
  }

  /** Has a lease ready for a lock that is waited for, so that its hand-off does not wait for one. */
  prepare(ttlMs: number, call: Call): void {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const [newest] = this.#idle.get(wantedSeconds)?.slice(-1) ?? [];
    if (this.#preparing.has(wantedSeconds) || (newest !== undefined && isUsable(newest))) return;
    this.#preparing.add(wantedSeconds);
    this.grant(ttlMs, call)
      .then((lease) => this.giveBack(lease))
      .catch(() => {
        // The grant asks again, and tells.
      })
      .finally(() => this.#preparing.delete(wantedSeconds));
  }

  async grant(ttlMs: number, call: Call): Promise<Lease> {
    const wantedSeconds = Math.ceil(ttlMs / 1_000);
    const grantedFrom = call.now();
    const sentAt = performance.now();
    const { id, ttlSeconds } = await this.#port.leaseGrant(wantedSeconds, call);
    return { id, wantedSeconds, ttlSeconds, grantedFrom, fresh: true, endsAt: sentAt + ttlSeconds * 1_000 };
  }

  giveBack(lease: Lease): void {
    if (lease.dropped === true) return;
    lease.fresh = false;
    if (this.#count >= MOST_IDLE) this.#forgetEnded();
    if (this.#count >= MOST_IDLE) return this.drop(lease);
    this.#count += 1;
    const idle = this.#idle.get(lease.wantedSeconds);
    if (idle === undefined) this.#idle.set(lease.wantedSeconds, [lease]);
    else idle.push(lease);
  }

  /** One of them was gone before its time: the others may be, too, and would be found out one by one. */
  forgetIdle(): void {
    this.#idle.clear();
    this.#count = 0;
  }

  /** Ends a lease that serves nobody, without waiting for it. If that fails it runs out. */
  drop(lease: Lease): void {
    this.revoke(lease, lease.ttlSeconds * 1_000).catch(() => {});
  }

  /** Afterwards it is no more, and no request that names it can write. */
  async revoke(lease: Lease, limit: Limit): Promise<void> {
    lease.dropped = true;
    await this.#port.leaseRevoke(lease.id, limit);
  }

  async renew(lease: Lease): Promise<Renewed> {
    const sentAt = performance.now();
    const renewed = await this.#keepAlive.renew(lease.id);
    if (renewed.ttlSeconds > 0) lease.endsAt = Math.max(lease.endsAt, sentAt + renewed.ttlSeconds * 1_000);
    return renewed;
  }

  /** Nothing is kept for a process that ends. */
  async close(limitMs: number): Promise<void> {
    const all = [...this.#idle.values()].flat();
    this.forgetIdle();
    const live = all.filter(({ endsAt }) => endsAt > performance.now());
    await Promise.allSettled(live.map(({ id }) => this.#port.leaseRevoke(id, limitMs)));
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

/** Not about to run out. */
function isUsable({ endsAt, ttlSeconds }: Lease): boolean {
  return endsAt - performance.now() > 100 * ttlSeconds;
}
