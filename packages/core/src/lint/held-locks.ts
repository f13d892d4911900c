import { AsyncLocalStorage } from 'node:async_hooks';
import { isContextCheap } from '../async-context.ts';
import { acquireTracing, type LockTrace, runTracing } from '../events.ts';
import { LeaseHandle } from '../lease/lease-handle.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import { currentFrame, heldAround } from '../scope/context.ts';
import type { AskedLock } from './order-graph.ts';
import { Place } from './place.ts';

class TakenLock implements AskedLock {
  readonly name: string;
  readonly backend: string;
  readonly place: Place;
  /** Absent until the lock is granted. */
  lease: LeaseState | undefined;

  constructor({ name, backend }: LockTrace, place: Place) {
    this.name = name;
    this.backend = backend;
    this.place = place;
  }

  get isHeld(): boolean {
    return this.lease !== undefined && !this.lease.released && this.lease.lost === undefined;
  }
}

/** Follows which locks the code holds that asks for another one, until the returned function is called. */
export function followHeldLocks(onAsk: (asked: AskedLock, held: readonly AskedLock[]) => void): () => void {
  /** What `acquire` and `tryAcquire` took before in the running code, which releases it by itself. */
  const taken = new AsyncLocalStorage<readonly TakenLock[]>();
  const asking = new WeakMap<LockTrace, TakenLock>();
  const ofLease = new WeakMap<LeaseState, TakenLock>();
  let run: LockTrace | undefined;

  const onRun = (message: unknown): void => {
    run = message as LockTrace;
  };
  const onStart = (message: unknown): void => {
    const trace = message as LockTrace;
    const isRun = run?.name === trace.name;
    run = undefined;
    // A lock that was asked for and not awaited is the affair of other code, which runs beside this one.
    const before = (taken.getStore() ?? []).filter(({ isHeld }) => isHeld);
    const held = new Set<AskedLock>(before);
    const frame = currentFrame();
    for (const lease of frame === undefined ? [] : heldAround(frame)) {
      const { owner, grant } = lease;
      const known = ofLease.get(lease);
      held.add(known ?? { name: grant.request.resource, backend: owner.backendName, place: undefined });
    }
    const asked = new TakenLock(trace, new Place());
    asking.set(trace, asked);
    // The code inside of a `run` is told by its frame.
    if (!isRun || !isContextCheap()) taken.enterWith([...before, asked]);
    if (trace.waits === true) onAsk(asked, [...held]);
  };
  const onEnd = (message: unknown): void => {
    const trace = message as LockTrace;
    const asked = asking.get(trace);
    const lease = LeaseHandle.of(trace.result)?.lease;
    if (asked === undefined || lease === undefined) return;
    asked.lease = lease;
    if (!ofLease.has(lease)) ofLease.set(lease, asked);
  };
  runTracing.start.subscribe(onRun);
  acquireTracing.start.subscribe(onStart);
  acquireTracing.asyncEnd.subscribe(onEnd);
  return () => {
    runTracing.start.unsubscribe(onRun);
    acquireTracing.start.unsubscribe(onStart);
    acquireTracing.asyncEnd.unsubscribe(onEnd);
    taken.disable();
  };
}
