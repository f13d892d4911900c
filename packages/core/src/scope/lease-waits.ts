import { holdInTheWay } from '../backend/modes.ts';
import type { LockMode } from '../backend/types.ts';
import type { LeaseOwner, LeaseState } from '../lifetime/lease-state.ts';
import { processWide } from '../process-wide.ts';
import { currentFrame, heldAround, type RunFrame } from './context.ts';

/** A request for a lock of a manager. */
interface LockRequest {
  readonly owner: LeaseOwner;
  readonly resource: string;
  readonly mode: LockMode;
}

/** A wait for a lock of code that runs inside a `run`: what that holds is not released before the wait has ended. */
interface LeaseWait extends LockRequest {
  readonly frame: RunFrame;
}

/** Why a lease does not end. */
interface Stuck {
  /** The wait inside its `run`. */
  readonly wait: LockRequest;
  /** The lease in the way of that wait; `undefined` of the wait that is looked at. */
  readonly behind: LeaseState | undefined;
}

/** A part of a circle: a lease whose `run` does not end before it gets the lock that it waits for. */
export interface CircleLink {
  readonly lease: LeaseState;
  readonly waitsFor: string;
}

/** What belongs to each lock. */
class ByLock<T> {
  readonly #owners = new Map<LeaseOwner, Map<string, Set<T>>>();

  get owners(): ReadonlyMap<LeaseOwner, ReadonlyMap<string, ReadonlySet<T>>> {
    return this.#owners;
  }

  of(owner: LeaseOwner, resource: string): Iterable<T> {
    return this.#owners.get(owner)?.get(resource) ?? [];
  }

  add(owner: LeaseOwner, resource: string, item: T): void {
    const locks = this.#owners.get(owner) ?? new Map<string, Set<T>>();
    const items = locks.get(resource) ?? new Set<T>();
    this.#owners.set(owner, locks.set(resource, items.add(item)));
  }

  delete(owner: LeaseOwner, resource: string, item: T): void {
    const locks = this.#owners.get(owner);
    const items = locks?.get(resource);
    items?.delete(item);
    if (items?.size === 0) locks?.delete(resource);
    if (locks?.size === 0) this.#owners.delete(owner);
  }
}

/** The waits inside of leases, of all managers and copies of core. */
export const leaseWaits = processWide('lease-waits@2', () => new ByLock<LeaseWait>());

/** Records the wait of code inside a `run`. Gives the function that ends the record. */
export function enterLeaseWait(request: LockRequest, frame: RunFrame): () => void {
  const { owner, resource, mode } = request;
  const wait: LeaseWait = { owner, resource, mode, frame };
  leaseWaits.add(owner, resource, wait);
  return () => leaseWaits.delete(owner, resource, wait);
}

/**
 * The circle that a wait of the running code would close; `undefined` where it closes none. It begins with a lease of the running code
 * and ends with the one that is in the way: the same one, where the code would wait for itself.
 *
 * A lease is stuck while code inside its `run` waits for a lock that stuck leases alone keep from it. Those around the running code
 * are stuck by the wait that is looked at. All other leases are taken to end.
 */
export function circleOf(request: LockRequest): readonly CircleLink[] | undefined {
  const frame = currentFrame();
  if (frame === undefined) return undefined;
  const stuck = new Map<LeaseState, Stuck>();
  const stuckOn = new ByLock<LeaseState>();
  const stick = (around: RunFrame, because: Stuck): void => {
    for (const lease of heldAround(around)) {
      if (stuck.has(lease)) continue;
      stuck.set(lease, because);
      stuckOn.add(lease.owner, lease.grant.request.resource, lease);
    }
  };
  const inTheWayOf = ({ owner, resource, mode }: LockRequest): LeaseState | undefined =>
    leaseInTheWay(stuckOn.of(owner, resource), mode);
  stick(frame, { wait: request, behind: undefined });
  // The map grows while it is read: each lease that is stuck may keep others from their end.
  for (const { owner, grant } of stuck.keys()) {
    for (const wait of leaseWaits.of(owner, grant.request.resource)) {
      const behind = inTheWayOf(wait);
      if (behind !== undefined) stick(wait.frame, { wait, behind });
    }
  }
  const circle: CircleLink[] = [];
  for (let lease = inTheWayOf(request); lease !== undefined; ) {
    const { wait, behind } = stuck.get(lease) as Stuck;
    circle.push({ lease, waitsFor: wait.resource });
    lease = behind;
  }
  const own = circle.pop();
  return own && [own, ...circle];
}

/** The lease of those on one lock that keeps a request waiting while all of them stay. */
function leaseInTheWay(leases: Iterable<LeaseState>, mode: LockMode): LeaseState | undefined {
  return holdInTheWay(leases, (lease) => (lease.mayBeShared ? SHARED : lease.grant.request.mode), mode);
}

const SHARED: LockMode = { kind: 'shared' };
