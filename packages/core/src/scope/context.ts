import { currentContext, isContextCheap, runIn } from '../async-context.ts';
import type { LockMode } from '../backend/types.ts';
import type { LeaseOwner, LeaseState } from '../lifetime/lease-state.ts';
import type { Caller, Scope } from './scope.ts';

/** The leases whose `run` is around a piece of code, innermost first. */
class Frame implements Caller {
  readonly lease: LeaseState;
  /** The scope in which others re-enter the lease; `undefined` where the lock is not reentrant. */
  readonly scope: Scope | undefined;
  readonly outer: Frame | undefined;

  constructor(lease: LeaseState, scope: Scope | undefined, outer: Frame | undefined) {
    this.lease = lease;
    this.scope = scope;
    this.outer = outer;
  }

  runsInside(scope: Scope): boolean {
    return this.scope === scope || (this.outer?.runsInside(scope) ?? false);
  }
}

const outside: Caller = { runsInside: () => false };

function currentFrame(): Frame | undefined {
  return currentContext() as Frame | undefined;
}

/** Runs `work` inside `scope`. */
export function runInside<T>(scope: Scope, work: () => T): T {
  return runIn(new Frame(scope.lease, scope, currentFrame()), work);
}

/** Runs `work` as the `run` of leases that it does not re-enter, so that code inside is not let wait for itself. */
export function runUnder<T>(leases: readonly LeaseState[], work: () => T): T {
  if (!isContextCheap()) return work();
  let frame = currentFrame();
  for (const lease of leases) frame = new Frame(lease, undefined, frame);
  return runIn(frame, work);
}

/** The scopes around the running code, as far as core can see them. */
export function currentCaller(): Caller {
  return currentFrame() ?? outside;
}

/** The innermost open scope around the running code that `matches`. */
export function enclosingScope(matches: (scope: Scope) => boolean): Scope | undefined {
  for (let frame = currentFrame(); frame !== undefined; frame = frame.outer) {
    if (frame.scope?.isOpen && matches(frame.scope)) return frame.scope;
  }
  return undefined;
}

/** The lease of a `run` around the running code that keeps a request on its resource waiting until that code has ended. */
export function ownLeaseInTheWay(
  owner: LeaseOwner,
  resource: string,
  mode: LockMode,
): LeaseState | undefined {
  let heldWeight = 0;
  for (let frame = currentFrame(); frame !== undefined; frame = frame.outer) {
    const { lease, scope } = frame;
    // Work that has ended waits for nothing more: its lease is about to be released.
    if (scope?.isOpen === false) continue;
    const { request } = lease.grant;
    if (lease.owner !== owner || request.resource !== resource || lease.released || lease.lost !== undefined)
      continue;
    if (request.mode.kind === 'permit' && mode.kind === 'permit') {
      heldWeight += request.mode.weight;
      if (heldWeight + mode.weight > mode.limit) return lease;
    } else if (request.mode.kind !== 'shared' || mode.kind !== 'shared') return lease;
  }
  return undefined;
}
