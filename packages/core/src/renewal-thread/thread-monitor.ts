import type { Clock } from '../lifetime/clock.ts';
import { LeaseMonitor } from '../lifetime/lease-monitor.ts';
import { endOf, type LeaseState } from '../lifetime/lease-state.ts';
import type { Protocol } from '../protocol.ts';
import type { Renewer } from './renewer.ts';
import { ThreadLease } from './thread-lease.ts';

/** The monitor of a manager that has a renewal thread: it gives its leases to the thread, and renews those that the thread does not. */
export abstract class ThreadMonitor extends LeaseMonitor {
  override readonly State = ThreadLease;
  abstract readonly renewer: Renewer;
  readonly #clock: Clock;

  constructor(protocol: Protocol, clock: Clock) {
    super(protocol, clock);
    this.#clock = clock;
  }

  override start(...given: Parameters<LeaseMonitor['start']>): LeaseState | undefined {
    const lease = super.start(...given) as ThreadLease | undefined;
    if (lease === undefined) return undefined;
    lease.monitor = this;
    this.renewer.monitor = this;
    this.keep(lease);
    return lease;
  }

  override blockedMs(now: number): number {
    return Math.max(super.blockedMs(now), Math.round(this.renewer.blockedMs(now)));
  }

  override stackOfBlock(): string | undefined {
    return this.renewer.takeStack();
  }

  override remove(lease: LeaseState, why?: string, now?: number): boolean {
    const { kept } = lease as ThreadLease;
    if (kept !== undefined && why === 'released') this.renewer.release(lease.grant, kept);
    else kept?.end();
    return super.remove(lease, why, now);
  }

  /** Gives a lease to the thread, unless a renewal of the event loop may still reach the store (docs/spec.md §20.5). */
  keep(lease: ThreadLease): void {
    if (!lease.autoRenew || lease.kept !== undefined || lease.isUnconfirmed) return;
    if (lease.repeatsRenewal || lease.lost !== undefined || !this.leases.has(lease)) return;
    const { grant, ttlMs, deadline, renewUntil } = lease;
    const kept = this.renewer.keep(grant, ttlMs, deadline - endOf(0, ttlMs), renewUntil);
    if (kept === undefined) return;
    lease.kept = kept;
    kept.onLost = (reason) => {
      if (lease.kept === kept) lease.lose(reason);
    };
    kept.onDropped = () => {
      if (lease.kept !== kept) return;
      lease.letGo();
      lease.renewIn(0, this.#clock.now());
      this.reschedule(lease);
    };
    lease.planLook(kept);
  }

  /** Is told that the thread has not renewed a lease in time. */
  isLate(): void {
    this.renewer.isLate();
  }
}
