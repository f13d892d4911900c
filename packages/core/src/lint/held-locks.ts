import { AsyncLocalStorage } from 'node:async_hooks';
import { isContextCheap } from '../async-context.ts';
import { acquireTracing, type LockTrace, runTracing } from '../events.ts';
import { LeaseHandle } from '../lease/lease-handle.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import { currentFrame, heldAround } from '../scope/context.ts';
import type { AskedLock } from './order-graph.ts';
import type { Place } from './place.ts';

class TakenLock implements AskedLock {
  readonly name: string;
  readonly backend: string;
  place: Place | undefined;
  /** Absent until the lock is granted. */
  lease: LeaseState | undefined;

  constructor({ name, backend }: LockTrace) {
    this.name = name;
    this.backend = backend;
  }

  get isHeld(): boolean {
    return this.lease !== undefined && !this.lease.released && this.lease.lost === undefined;
  }
}

/**
 * Notes the lock of an object in the object itself: a `WeakMap` with an entry for each acquire takes the garbage collector longer than the
 * acquire.
 */
class Attachment<Owner extends object> {
  readonly #key = Symbol('lintLocks');

  of(owner: Owner): TakenLock | undefined {
    return (owner as Record<symbol, TakenLock | undefined>)[this.#key];
  }

  set(owner: Owner, lock: TakenLock): void {
    (owner as Record<symbol, TakenLock>)[this.#key] = lock;
  }
}

/**
 * Follows which locks the code holds that asks for another one, until the returned function is called.
 *
 * @param onAsk - called in the acquire, with what the code holds; with nothing for an acquire that does not wait
 */
export function followHeldLocks(onAsk: (asked: AskedLock, held: ReadonlySet<AskedLock>) => void): () => void {
  /** What `acquire` and `tryAcquire` took before in the running code, which releases it by itself. */
  const taken = new AsyncLocalStorage<readonly TakenLock[]>();
  const asking = new Attachment<LockTrace>();
  const ofLease = new Attachment<LeaseState>();
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
      const known = ofLease.of(lease);
      held.add(known ?? { name: grant.request.resource, backend: owner.backendName, place: undefined });
    }
    const asked = new TakenLock(trace);
    asking.set(trace, asked);
    // The code inside of a `run` is told by its frame.
    if (!isRun || !isContextCheap()) taken.enterWith([...before, asked]);
    onAsk(asked, trace.waits === true ? held : new Set());
  };
  const onEnd = (message: unknown): void => {
    const trace = message as LockTrace;
    const asked = asking.of(trace);
    const lease = LeaseHandle.of(trace.result)?.lease;
    if (asked === undefined || lease === undefined) return;
    asked.lease = lease;
    if (ofLease.of(lease) === undefined) ofLease.set(lease, asked);
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
