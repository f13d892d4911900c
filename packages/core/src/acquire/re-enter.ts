import type { LockMode } from '../backend/types.ts';
import { CallContext, INTERRUPTED } from '../call/call-context.ts';
import { CLOSED } from '../call/call-deadlines.ts';
import { Failure } from '../call/failure.ts';
import { mustBe, quote } from '../errors.ts';
import { LeaseHandle } from '../lease/lease-handle.ts';
import { notOwnLease } from '../lease/not-own-lease.ts';
import { releaseQuietly } from '../lease/release-quietly.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { ResolvedOptions } from '../options.ts';
import { currentCaller } from '../scope/context.ts';
import type { Scope, ScopeEntry } from '../scope/scope.ts';
import { conflictError } from './conflict-error.ts';
import { interruptionFromOutside } from './interruption-error.ts';

/**
 * Re-enters a lease: explicitly by `within`, or implicitly by the scope around the caller.
 *
 * Resolves with `undefined` when the implicit scope closed first, so that the caller acquires as a stranger; or, with `single`,
 * when another child has the turn.
 *
 * @throws LockError `LOCK_REENTRANT`, `LOCK_TIMEOUT`, `LOCK_CONTENDED`, `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_INVALID_ARGUMENT`
 */
export async function enterScope(
  core: ManagerCore,
  name: string,
  mode: LockMode,
  options: ResolvedOptions,
  single: boolean,
  implicit: Scope | undefined,
): Promise<LeaseHandle | undefined> {
  const scope = implicit ?? scopeOf(core, name, options.within);
  refuseUpgrade(core, name, mode, scope);
  // Reading the loss closes the scopes of a lease that is over by the clock, also before any timer ran.
  void scope.lease.lost;
  const entry = scope.tryEnter() ?? (single ? undefined : await waitForTurn(core, name, options, scope));
  if (entry === undefined) return undefined;
  if (entry.status === 'entered') return new LeaseHandle(core, scope.lease, entry.scope);
  if (implicit !== undefined) return undefined;
  throw scope.lease.lost ?? notHeld(core, name);
}

function scopeOf(core: ManagerCore, name: string, within: unknown): Scope {
  const handle = LeaseHandle.of(within);
  if (handle === undefined) throw notOwnLease('within', within);
  if (handle.core !== core) throw mustBe('within', 'a lease of this lock manager', within);
  if (handle.name !== name) throw mustBe('within', `a lease on ${quote(name)}`, handle.name);
  if (handle.isReleased) throw notHeld(core, name);
  if (handle.lease.lost !== undefined) throw handle.lease.lost;
  return handle.scope;
}

function notHeld(core: ManagerCore, name: string): Error {
  return core.error('LOCK_NOT_HELD', `The lease on ${quote(name)} that within names was released.`, name);
}

/** A re-entry gets no more than the lease has: two readers that both waited to write would wait for ever. */
function refuseUpgrade(core: ManagerCore, name: string, mode: LockMode, scope: Scope): void {
  const held = scope.lease.grant.request.mode;
  if (held.kind !== mode.kind && (held.kind === 'permit' || mode.kind === 'permit')) {
    throw conflictError(core, { resource: name, mode }, held);
  }
  const asksForMore =
    held.kind === 'permit' && mode.kind === 'permit'
      ? mode.weight > held.weight
      : mode.kind === 'exclusive' && (held.kind === 'shared' || scope.lease.mayBeShared);
  if (!asksForMore) return;
  throw core.error(
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
  core: ManagerCore,
  name: string,
  options: ResolvedOptions,
  scope: Scope,
): Promise<ScopeEntry> {
  const caller = currentCaller();
  if (scope.wouldDeadlock(caller)) {
    throw core.error(
      'LOCK_REENTRANT',
      `Re-entering ${quote(name)} here would wait for itself: the branch that has the turn is, or waits for, ` +
        'this very code. Use the lease that this branch was given.',
      name,
    );
  }
  const startedAt = core.now();
  const context = new CallContext(
    core.deadlines,
    startedAt + options.waitMs,
    options.signal,
    CLOSED,
    Number.POSITIVE_INFINITY,
    startedAt,
  );
  const { entry, cancel } = scope.queue(caller);
  core.keepAlive.enter();
  const given = await context.answerOf(
    () => entry,
    (late) => leaveAgain(core, late),
  );
  core.keepAlive.leave();
  const { interruption } = context;
  context.done();
  if (given === INTERRUPTED || given instanceof Failure) cancel();
  else if (interruption === undefined) return given;
  // The turn and the interruption came in one moment: the caller was told to stop.
  else leaveAgain(core, given);
  const outside = interruptionFromOutside(core, name, context);
  if (outside !== undefined) throw outside.reason;
  throw core.error(
    options.waitMs > 0 ? 'LOCK_TIMEOUT' : 'LOCK_CONTENDED',
    `Gave up on ${quote(name)} after ${Math.round(core.now() - startedAt)} ms: another branch of the same scope has ` +
      'the turn. A branch that calls itself again passes the lease it was given as within.',
    name,
  );
}

/** Passes on a turn that came in the moment in which its caller gave up. */
function leaveAgain(core: ManagerCore, entry: ScopeEntry): void {
  if (entry.status !== 'entered') return;
  // The turn is left through a handle: if all other handles were released already, this one releases the lease.
  void releaseQuietly(new LeaseHandle(core, entry.scope.lease, entry.scope));
}
