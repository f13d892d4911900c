import { LeaseState, type SentRenewal } from '../lifetime/lease-state.ts';
import { watchHandle } from '../lifetime/leaked-leases.ts';
import type { SharedRenewal } from './shared-renewal.ts';

/** The part of its ttl after which the event loop renews a lease that the thread has not renewed. The thread has tried twice by then. */
const LATE = 0.6;

/** The monitor, as far as a lease needs it. */
interface Keeper {
  /** Gives a lease to the thread. */
  keep(lease: ThreadLease): void;
  reschedule(lease: ThreadLease): void;
  /** Is told that the thread has not renewed a lease in time. */
  isLate(): void;
}

/** The state of a lease that the renewal thread may keep: it is read from the shared memory before anything is told (docs/spec.md §20.3). */
export class ThreadLease extends LeaseState {
  /** Renews the lease, until {@link letGo}; a lease that was released or lost is read from it further on. */
  kept: SharedRenewal | undefined;
  monitor: Keeper | undefined;
  /** Whether a renewal of the thread has no answer that was under way when the event loop took over. */
  #isSettling = false;

  override get deadline(): number {
    return this.kept?.lossReason === undefined ? this.keptUntil : Number.NEGATIVE_INFINITY;
  }

  override get keptUntil(): number {
    return this.kept?.validUntil ?? super.keptUntil;
  }

  override get isUnconfirmed(): boolean {
    return super.isUnconfirmed || this.kept?.isUnconfirmed === true;
  }

  override loseByTime(): void {
    const reason = this.kept?.lossReason;
    if (reason === undefined) super.loseByTime();
    else this.lose(reason);
  }

  override renewalSent(ttlMs: number, sentAt: number, isRequested: boolean): SentRenewal {
    // Before a renewal with another ttl is sent (docs/spec.md §20.5).
    this.letGo();
    return super.renewalSent(ttlMs, sentAt, isRequested);
  }

  override renewed(renewal: SentRenewal, keptMs: number | undefined): void {
    super.renewed(renewal, keptMs);
    if (this.#isSettling) this.monitor?.isLate();
    this.monitor?.keep(this);
  }

  /** Ends the renewal by the thread, and goes on with what it has confirmed. */
  letGo(): void {
    const { kept } = this;
    if (kept === undefined) return;
    const isUnconfirmed = kept.end();
    const { ttlMs, countedFrom } = kept;
    this.kept = undefined;
    super.renewed(super.renewalSent(ttlMs, countedFrom, false), undefined);
    if (!isUnconfirmed) return;
    // A longer renewal reckons with one of the thread that the store may carry out after it (docs/spec.md §1.7).
    const sent = super.renewalSent(ttlMs, countedFrom, false);
    this.#isSettling = true;
    kept.onSettled = () => {
      this.#isSettling = false;
      sent.unclear = true;
    };
  }

  /** Plans when the event loop looks whether the thread has renewed the lease. */
  planLook(kept: SharedRenewal): void {
    this.renewAt = kept.countedFrom + LATE * kept.ttlMs;
    this.renewFrom = this.renewAt;
  }

  override isKept(now: number): boolean {
    const { kept, monitor } = this;
    if (kept === undefined || monitor === undefined) return false;
    watchHandle(this);
    this.planLook(kept);
    if (now < this.renewFrom) {
      monitor.reschedule(this);
      return true;
    }
    // The thread is late: the event loop renews the lease, and gives it to the thread again after that.
    monitor.isLate();
    this.letGo();
    return false;
  }
}
