import { currentContext, isContextCheap, runIn } from '../async-context.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import type { Caller, Scope } from './scope.ts';

/** The leases whose `run` is around a piece of code, innermost first. */
export class RunFrame implements Caller {
  readonly lease: LeaseState;
  /** The scope in which others re-enter the lease; `undefined` where the lock is not reentrant. */
  readonly scope: Scope | undefined;
  readonly outer: RunFrame | undefined;

  constructor(lease: LeaseState, scope: Scope | undefined, outer: RunFrame | undefined) {
    this.lease = lease;
    this.scope = scope;
    this.outer = outer;
  }

  runsInside(scope: Scope): boolean {
    return this.scope === scope || (this.outer?.runsInside(scope) ?? false);
  }
}

const outside: Caller = { runsInside: () => false };

/** The innermost `run` around the running code, as far as core can see it. */
export function currentFrame(): RunFrame | undefined {
  return currentContext() as RunFrame | undefined;
}

/** The leases that are released only when code inside of a frame has ended. */
export function* heldAround(innermost: RunFrame): Generator<LeaseState> {
  for (let frame: RunFrame | undefined = innermost; frame !== undefined; frame = frame.outer) {
    const { lease, scope } = frame;
    // Work that has ended waits for nothing more: its lease is about to be released.
    if (scope?.isOpen !== false && !lease.released && lease.lost === undefined) yield lease;
  }
}

/** Runs `work` inside `scope`. */
export function runInside<T>(scope: Scope, work: () => T): T {
  return runIn(new RunFrame(scope.lease, scope, currentFrame()), work);
}

/** Runs `work` as the `run` of leases that it does not re-enter, so that code inside is not let wait for itself. */
export function runUnder<T>(leases: readonly LeaseState[], work: () => T): T {
  if (leases.length === 0 || !isContextCheap()) return work();
  let frame = currentFrame();
  for (const lease of leases) frame = new RunFrame(lease, undefined, frame);
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
