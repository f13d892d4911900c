import { freshAcquisitionId } from '../acquire/acquisition-id.ts';
import { faultOfGrant } from '../acquire/check-grant.ts';
import { asFailure, asked, type Failure, isFailure } from '../acquire/failure.ts';
import { endedFromOutside } from '../acquire/interrupted.ts';
import { INTERRUPTED, Patience } from '../acquire/patience.ts';
import { reportAcquired, takeUp, USELESS_GRANT } from '../acquire/take-up.ts';
import type { AcquireRequest, Grant } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { type Lease, LeaseHandle } from '../lease.ts';
import { type ResolvedOptions, resolveAcquireOptions } from '../options.ts';
import type { Hold } from '../tenure/hold.ts';
import type { AllOptions, Member } from './all.ts';

/** `apart`: they must be acquired one by one. */
export type Together =
  | { readonly status: 'granted'; readonly leases: readonly Lease[] }
  | { readonly status: 'contended' | 'apart' };

/** A single attempt has no `waitMs` to end it. */
const SINGLE_ATTEMPT_MS = 10_000;

interface Asked {
  readonly request: AcquireRequest;
  readonly options: ResolvedOptions;
}

/**
 * Takes all members in one step of one backend, where they live on one that can (docs/spec.md §16.4). What the store says
 * no to, or does not answer in a way that can be repeated, is left to be acquired one by one, unless `waitMs` is 0.
 *
 * @throws LockError `LOCK_BACKEND`, `LOCK_CLOSED`, `LOCK_INVALID_ARGUMENT`, or the reason of the caller's signal
 */
export async function acquireAtOnce(
  members: readonly Member[],
  options: AllOptions | undefined,
  waitMs: number,
): Promise<Together> {
  const engine = members[0]?.parts?.engine;
  const apart = members.some(({ parts }) => parts?.engine !== engine);
  if (engine === undefined || apart || members.length === 1) return { status: 'apart' };
  const { attemptMany, capabilities } = engine.backend;
  if (attemptMany === undefined) return { status: 'apart' };

  const all = members.map(({ lock, parts }): Asked => {
    const resolved = resolveAcquireOptions(
      (parts as { options: ResolvedOptions }).options,
      options,
      capabilities.ttl,
    );
    const { label, ttlMs } = resolved;
    const request = {
      resource: lock.name,
      acquisitionId: freshAcquisitionId(),
      label,
      mode: lock.mode,
      ttlMs,
    };
    return { request, options: resolved };
  });
  const signal = all[0]?.options.signal;
  signal?.throwIfAborted();
  engine.assertOpen(members[0]?.lock.name);
  const startedAt = engine.now();
  const single = waitMs === 0;
  const limitMs = single ? Math.min(SINGLE_ATTEMPT_MS, ...all.map(({ request }) => request.ttlMs)) : waitMs;
  const patience = new Patience(engine.patiences, startedAt + limitMs, signal);
  try {
    const requests = all.map(({ request }) => request);
    const answer = await patience.guard<readonly Grant[] | Failure | undefined>(
      asked(() => attemptMany.call(engine.backend, requests, patience)),
      asFailure,
      // The ids were abandoned already, perhaps before the step reached the store (docs/spec.md §2.2).
      (late) => {
        if (late !== undefined) abandonAll(engine, all);
      },
    );
    if (answer === INTERRUPTED || patience.interruption !== undefined) {
      abandonAll(engine, all);
      const resource = members[0]?.lock.name ?? '';
      const ended = endedFromOutside(engine, resource, patience);
      throw ended === undefined
        ? engine.backendError('acquire', resource, new Error('the store did not answer in time'))
        : ended.reason;
    }
    if (answer === undefined) return { status: 'contended' };
    if (isFailure(answer)) {
      // It may have run all the same (docs/spec.md §2.2).
      abandonAll(engine, all);
      if (!single && engine.isRetryable(answer.error)) return { status: 'apart' };
      throw engine.backendError('acquire', members[0]?.lock.name, answer.error);
    }
    const leases = accept(engine, all, answer, startedAt);
    if (leases !== undefined) return { status: 'granted', leases };
    if (!single) return { status: 'apart' };
    throw engine.backendError('acquire', members[0]?.lock.name, new Error(USELESS_GRANT));
  } finally {
    patience.done();
  }
}

function accept(
  engine: Engine,
  all: readonly Asked[],
  grants: readonly Grant[],
  startedAt: number,
): LeaseHandle[] | undefined {
  const now = engine.now();
  const { capabilities } = engine.backend;
  const fault = all
    .map(({ request }, index) =>
      faultOfGrant(grants?.[index] as Grant, request.acquisitionId, capabilities, now),
    )
    .find((one) => one !== undefined);
  if (fault !== undefined) {
    abandonAll(engine, all);
    const cause = new Error(`the backend broke its contract: ${fault}`);
    throw engine.backendError('acquire', all[0]?.request.resource, cause);
  }
  const holds = all.map(({ options }, index) => takeUp(engine, grants[index] as Grant, options, now));
  if (!holds.every((hold) => hold !== undefined)) {
    for (const hold of holds) if (hold !== undefined) dropUnused(engine, hold);
    abandonAll(engine, all);
    return undefined;
  }
  all.forEach(({ request }, index) =>
    reportAcquired(engine, request, grants[index] as Grant, now - startedAt),
  );
  return holds.map((hold) => new LeaseHandle(engine, hold));
}

function dropUnused(engine: Engine, hold: Hold): void {
  hold.released = true;
  engine.keeper.remove(hold);
  hold.unfollow?.();
}

function abandonAll(engine: Engine, all: readonly Asked[]): void {
  for (const { request } of all) engine.abandon(request);
}
