import { INTERRUPTED, Patience } from '../acquire/patience.ts';
import type { LockMode } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { invalidArgument } from '../errors.ts';
import { LeaseHandle } from '../lease.ts';
import { describe } from '../names.ts';
import type { ResolvedOptions } from '../options.ts';
import { currentCaller } from './context.ts';
import type { Entry, Scope } from './scope.ts';

/**
 * Re-enters a lease: explicitly by `within`, or implicitly by the scope found around the caller.
 *
 * `undefined`: the implicit scope closed first, so the caller acquires as a stranger; or, with `single`, another child
 * has the turn.
 *
 * @throws LockError `LOCK_REENTRANT`, `LOCK_TIMEOUT`, `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_INVALID_ARGUMENT`
 */
export async function enterScope(
  engine: Engine,
  name: string,
  mode: LockMode,
  options: ResolvedOptions,
  single: boolean,
  implicit?: Scope,
): Promise<LeaseHandle | undefined> {
  const scope = implicit ?? scopeOf(engine, name, options.within);
  refuseUpgrade(engine, name, mode, scope);
  // A hold that is over by the clock closes its scopes, also before any timer ran.
  void scope.hold.lost;
  const entry = scope.tryEnter() ?? (single ? undefined : await waitForTurn(engine, name, options, scope));
  if (entry === undefined) return undefined;
  if (entry.status === 'entered') return new LeaseHandle(engine, scope.hold, entry.scope);
  if (implicit !== undefined) return undefined;
  throw scope.hold.lost ?? notHeld(engine, name);
}

function scopeOf(engine: Engine, name: string, within: unknown): Scope {
  const lease = LeaseHandle.of(within);
  if (lease === undefined) {
    throw invalidArgument(`within must be a lease of this copy of @locks/core, not ${describe(within)}.`);
  }
  if (lease.engine !== engine)
    throw invalidArgument('within is a lease of another lock manager.', { resource: name });
  if (lease.name !== name) {
    throw invalidArgument(
      `within is a lease on ${JSON.stringify(lease.name)}; it cannot be re-entered for ${JSON.stringify(name)}.`,
      { resource: name },
    );
  }
  if (lease.isReleased) throw notHeld(engine, name);
  if (lease.hold.lost !== undefined) throw lease.hold.lost;
  return lease.scope;
}

function notHeld(engine: Engine, name: string): Error {
  return engine.error(
    'LOCK_NOT_HELD',
    `The lease on ${JSON.stringify(name)} that within names was released.`,
    {
      resource: name,
    },
  );
}

/** Two readers that both wait to write would wait for each other for ever. */
function refuseUpgrade(engine: Engine, name: string, mode: LockMode, scope: Scope): void {
  const held = scope.hold.grant.request.mode.kind;
  if (held !== 'shared' || mode.kind !== 'exclusive') return;
  throw engine.error(
    'LOCK_REENTRANT',
    `The shared lease on ${JSON.stringify(name)} cannot be upgraded to an exclusive one. ` +
      'Release it first, or take the exclusive lock from the start.',
    { resource: name },
  );
}

async function waitForTurn(
  engine: Engine,
  name: string,
  options: ResolvedOptions,
  scope: Scope,
): Promise<Entry> {
  const caller = currentCaller();
  if (scope.wouldDeadlock(caller)) {
    throw engine.error(
      'LOCK_REENTRANT',
      `Re-entering ${JSON.stringify(name)} here would wait for itself: the branch that has the turn is, or waits for, ` +
        'this very code. Use the lease that this branch was given.',
      { resource: name },
    );
  }
  const startedAt = engine.now();
  const patience = new Patience(engine.patiences, startedAt + options.waitMs, options.signal);
  const { entry, cancel } = scope.queue(caller);
  engine.keepAlive.enter();
  try {
    const given = await patience.guard(entry, undefined, (late) => leaveAgain(engine, late));
    if (given === INTERRUPTED) cancel();
    else if (patience.interruption === undefined) return given;
    // The turn and the interruption in one moment: the caller was told to stop.
    else leaveAgain(engine, given);
  } finally {
    engine.keepAlive.leave();
    patience.done();
  }
  throw interruptedError(engine, name, options, patience, engine.now() - startedAt);
}

/** The turn came in the moment in which the caller gave up: it goes to the next. */
function leaveAgain(engine: Engine, entry: Entry): void {
  if (entry.status !== 'entered') return;
  // By a handle, as all leave: the others may have left already, and then this one gives the lease back.
  void new LeaseHandle(engine, entry.scope.hold, entry.scope)[Symbol.asyncDispose]();
}

function interruptedError(
  engine: Engine,
  name: string,
  options: ResolvedOptions,
  patience: Patience,
  waitedMs: number,
): unknown {
  if (patience.interruption === 'aborted') return options.signal?.reason;
  if (patience.interruption === 'closed') {
    return engine.error('LOCK_CLOSED', 'The lock manager was closed while it waited.', { resource: name });
  }
  return engine.error(
    'LOCK_TIMEOUT',
    `Gave up on ${JSON.stringify(name)} after ${Math.round(waitedMs)} ms: another branch of the same scope has the turn. ` +
      'Branches of one scope take turns; a branch that calls itself again passes the lease it was given as within.',
    { resource: name },
  );
}
