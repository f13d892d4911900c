import { USELESS_GRANT } from '../acquire/acquire-loop.ts';
import { isAged, renewAged } from '../acquire/aged-grant.ts';
import { freshAcquisitionId } from '../acquire/acquisition-id.ts';
import { interruptionFromOutside } from '../acquire/interruption-error.ts';
import { grantFault } from '../backend/grant-fault.ts';
import { NoAnswerError } from '../backend/time-limit.ts';
import type { AcquireRequest, Grant } from '../backend/types.ts';
import { CallContext, INTERRUPTED } from '../call/call-context.ts';
import { DRAINING } from '../call/call-deadlines.ts';
import { Failure } from '../call/failure.ts';
import { isLockError, type LockError, quote } from '../errors.ts';
import { acquiredChannel, publish } from '../events.ts';
import type { Lease } from '../lease.ts';
import { LeaseHandle } from '../lease/lease-handle.ts';
import type { ManagerCore } from '../manager-core.ts';
import { ACQUIRE_TABLE, attemptLimitMs, type ResolvedOptions, resolveOptions } from '../options.ts';
import { identity } from '../lifetime/lease-monitor.ts';
import type { Validity } from '../lifetime/lease-state.ts';
import type { AllOptions, LockMember } from './multi-lock.ts';

/** `one-by-one`: this step does not apply, or failed, and the members must be acquired one after the other. */
export type SetAttempt =
  | { readonly status: 'granted'; readonly leases: readonly Lease[] }
  | { readonly status: 'contended' | 'one-by-one' };

interface MemberRequest {
  readonly request: AcquireRequest;
  readonly options: ResolvedOptions;
}

/**
 * Takes all members in one step of one backend, where they live on one that can (docs/spec.md §16.4). Members that the store
 * refuses, or fails at, are left to be acquired one by one: that names the member at fault. In a single attempt an error that can be
 * repeated is thrown for all of them.
 *
 * @throws LockError `LOCK_BACKEND`, `LOCK_CLOSED`, `LOCK_INVALID_ARGUMENT`, or the reason of the caller's signal
 */
export async function acquireAtOnce(
  members: readonly LockMember[],
  options: AllOptions | undefined,
  waitMs: number,
  isSingle: boolean,
): Promise<SetAttempt> {
  const core = members[0]?.internals?.core;
  const sharesManager = members.every(({ internals }) => internals?.core === core);
  if (core === undefined || core.backend.attemptMany === undefined || !sharesManager || members.length === 1)
    return { status: 'one-by-one' };
  const all = members.map((member) => requestOf(member, core, options));
  const signal = all[0]?.options.signal;
  signal?.throwIfAborted();
  core.assertOpen();
  const startedAt = core.now();
  const shortestTtlMs = Math.min(...all.map(({ request }) => request.ttlMs));
  const limitMs = isSingle ? attemptLimitMs(core.answerMs, shortestTtlMs) : waitMs;
  const latest = Number.POSITIVE_INFINITY;
  const context = new CallContext(core.deadlines, startedAt + limitMs, signal, DRAINING, latest, startedAt);
  const answer = await core.attempts.answerOf<readonly Grant[] | undefined>(
    context,
    () =>
      core.protocol.calls.attemptMany?.(
        all.map(({ request }) => request),
        context,
      ) as Promise<readonly Grant[] | undefined>,
    (late) => {
      // The ids were abandoned already, perhaps before the step reached the store (docs/spec.md §2.2).
      if (late !== undefined) abandonAll(core, all);
    },
  );
  const isAnswered = answer !== INTERRUPTED && answer !== undefined && !(answer instanceof Failure);
  const validities = isAnswered ? await validitiesOf(core, all, answer, context) : [];
  const { interruption } = context;
  context.done();
  if (answer === INTERRUPTED || interruption !== undefined) {
    abandonAll(core, all);
    const outside = interruptionFromOutside(core, undefined, context);
    throw outside === undefined ? errorOfAll(core, all, new NoAnswerError(limitMs)) : outside.reason;
  }
  if (answer === undefined) return { status: 'contended' };
  if (answer instanceof Failure) {
    // The store may have executed the failed step (docs/spec.md §2.2).
    abandonAll(core, all);
    const { error } = answer;
    if (!isLockError(error) && !(isSingle && core.isRetryable(error))) return { status: 'one-by-one' };
    throw errorOfAll(core, all, error);
  }
  if (validities === undefined) abandonAll(core, all);
  const leases = validities && accept(core, all, answer, startedAt, validities);
  if (leases !== undefined) return { status: 'granted', leases };
  if (!isSingle) return { status: 'one-by-one' };
  throw errorOfAll(core, all, new Error(USELESS_GRANT));
}

function requestOf(
  { lock, internals }: LockMember,
  core: ManagerCore,
  options: AllOptions | undefined,
): MemberRequest {
  const { capabilities } = core.backend;
  const base = (internals as { options: ResolvedOptions }).options;
  const resolved = resolveOptions(ACQUIRE_TABLE, base, options, capabilities.ttl);
  const { label, ttlMs } = resolved;
  const acquisitionId = freshAcquisitionId();
  return {
    request: { resource: lock.name, acquisitionId, label, mode: lock.mode, ttlMs },
    options: resolved,
  };
}

/**
 * Renews all where one has too little time left (docs/spec.md §1.4). Resolves with what the renewal confirmed, which is nothing where
 * none was needed, and with `undefined` where one of them was not confirmed.
 */
async function validitiesOf(
  core: ManagerCore,
  all: readonly MemberRequest[],
  grants: readonly Grant[],
  context: CallContext,
): Promise<readonly Validity[] | undefined> {
  const items = all.map(({ request: { ttlMs } }, index) => ({ grant: grants?.[index] as Grant, ttlMs }));
  return items.some(({ grant, ttlMs }) => isAged(core, grant, ttlMs, false))
    ? await renewAged(core, items, context, false)
    : [];
}

/** Turns the grants into leases; `undefined`, with nothing held, where one of the grants is of no use. */
function accept(
  core: ManagerCore,
  all: readonly MemberRequest[],
  grants: readonly Grant[],
  startedAt: number,
  validities: readonly Validity[],
): LeaseHandle[] | undefined {
  const now = core.now();
  const { capabilities } = core.backend;
  for (const [index, { request }] of all.entries()) {
    const fault = grantFault(grants?.[index] as Grant, request.acquisitionId, capabilities, now);
    if (fault === undefined) continue;
    abandonAll(core, all);
    throw core.contractError('acquire', request.resource, fault);
  }
  const leases = all.map(({ options }, index) => {
    const grant = grants[index] as Grant;
    return core.monitor.start(core, grant, options, now, validities[index] ?? grant);
  });
  if (!leases.every((lease) => lease !== undefined)) {
    for (const lease of leases) {
      if (lease === undefined) continue;
      lease.released = true;
      core.drop(lease, 'useless');
    }
    abandonAll(core, all);
    return undefined;
  }
  if (acquiredChannel.hasSubscribers) {
    const waitedMs = now - startedAt;
    for (const lease of leases) {
      const { fencingToken } = lease.grant;
      publish('locks:acquired', { ...identity(lease), waitedMs, contendedAs: undefined, fencingToken });
    }
  }
  return leases.map((lease) => new LeaseHandle(core, lease, undefined));
}

/** The error of a step that has one answer for all: no member failed by itself, so the message names them all. */
function errorOfAll(core: ManagerCore, all: readonly MemberRequest[], cause: unknown): LockError {
  const names = all.map(({ request }) => quote(request.resource)).join(', ');
  return core.backendError(`acquire all of ${names}`, undefined, cause);
}

function abandonAll(core: ManagerCore, all: readonly MemberRequest[]): void {
  for (const { request } of all) core.abandon(request);
}
