import { conflictError } from '../acquire/conflict-error.ts';
import { endedFromOutside } from '../acquire/interrupted.ts';
import { INTERRUPTED, Patience } from '../acquire/patience.ts';
import type { LockMode } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { mustBe, quote } from '../errors.ts';
import { LeaseHandle } from '../lease.ts';
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
  if (lease === undefined) throw mustBe('within', 'a lease of this copy of @locks/core', within);
  if (lease.engine !== engine) throw mustBe('within', 'a lease of this lock manager', within);
  if (lease.name !== name) throw mustBe('within', `a lease on ${quote(name)}`, lease.name);
  if (lease.isReleased) throw notHeld(engine, name);
  if (lease.hold.lost !== undefined) throw lease.hold.lost;
  return lease.scope;
}

function notHeld(engine: Engine, name: string): Error {
  return engine.error('LOCK_NOT_HELD', `The lease on ${quote(name)} that within names was released.`, name);
}

/** A re-entry gets no more than the lease has: two readers that both wait to write would wait for ever. */
function refuseUpgrade(engine: Engine, name: string, mode: LockMode, scope: Scope): void {
  const held = scope.hold.grant.request.mode;
  if (held.kind !== mode.kind && (held.kind === 'permit' || mode.kind === 'permit')) {
    throw conflictError(engine, { resource: name, mode }, held);
  }
  const asksForMore =
    held.kind === 'permit' && mode.kind === 'permit'
      ? mode.weight > held.weight
      : mode.kind === 'exclusive' && (held.kind === 'shared' || scope.hold.mayBeShared);
  if (!asksForMore) return;
  throw engine.error(
    'LOCK_REENTRANT',
    held.kind === 'permit'
      ? `The lease on ${quote(name)} has ${held.weight} of its permits; a re-entry cannot add to them. ` +
          'Acquire as many as the whole work needs.'
      : `The shared lease on ${quote(name)} cannot be upgraded to an exclusive one. ` +
          'Release it first, or take the exclusive lock from the start.',
    name,
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
      `Re-entering ${quote(name)} here would wait for itself: the branch that has the turn is, or waits for, ` +
        'this very code. Use the lease that this branch was given.',
      name,
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
  const ended = endedFromOutside(engine, name, patience);
  if (ended !== undefined) throw ended.reason;
  throw engine.error(
    'LOCK_TIMEOUT',
    `Gave up on ${quote(name)} after ${Math.round(engine.now() - startedAt)} ms: another branch of the same scope has ` +
      'the turn. A branch that calls itself again passes the lease it was given as within.',
    name,
  );
}

/** The turn came in the moment in which the caller gave up: it goes to the next. */
function leaveAgain(engine: Engine, entry: Entry): void {
  if (entry.status !== 'entered') return;
  // By a handle, as all leave: the others may have left already, and then this one gives the lease back.
  void new LeaseHandle(engine, entry.scope.hold, entry.scope)[Symbol.asyncDispose]();
}
