import type { AcquireRequest, Grant, LockMode, LossReason, TurnWait } from '@locks/core/backend';
import type { AdvisorySession } from './advisory-session.ts';
import type { ServerMode } from './lock-steps.ts';

/** One acquisition of this process that holds or waits. */
export interface AdvisoryAcquisition {
  readonly request: AcquireRequest;
  /** Core's clock. */
  readonly now: () => number;
  readonly arrivedAt: number;
  /** The pending `awaitTurn`, if there is one. */
  readonly wait: TurnWait;
  /** The present mode, which differs from the request's after a downgrade. */
  mode: LockMode;
  group: SharedLockGroup;
  grant: Grant | undefined;
  grantedAt: number;
  /** The controller that reports a loss to core; made with the grant. */
  lost: AbortController | undefined;
}

/**
 * Acquisitions of this process that are neighbours in the queue of one resource and share one lock of one session, or its
 * position in the server's queue: it serves them one after the other. Exclusive acquisitions come first and shared ones
 * after them, so the lock is only ever weakened.
 */
export interface SharedLockGroup {
  /** `parked`: no connection was free to wait on. */
  state: 'parked' | 'queued' | 'held' | 'over';
  session: AdvisorySession | undefined;
  /** The mode of the lock that the session has, or waits for. */
  serverMode: ServerMode;
  readonly holders: Set<AdvisoryAcquisition>;
  readonly waiting: AdvisoryAcquisition[];
  /** Resolves when the wait in the server's queue has ended and its grant is confirmed. */
  serverWait: Promise<unknown> | undefined;
  /** Whether the group's position is fixed: requests that reach the server from now on are served later. */
  positioned: boolean;
  /**
   * The time, on `performance.now()`, at which nobody waited behind the group for certain: what arrived here before may join.
   * Whoever is behind the group now reached the server later.
   */
  lastAt: number;
}

export function newGroup(state: SharedLockGroup['state'], serverMode: ServerMode): SharedLockGroup {
  return {
    state,
    session: undefined,
    serverMode,
    holders: new Set(),
    waiting: [],
    serverWait: undefined,
    positioned: state === 'held',
    lastAt: -Infinity,
  };
}

/** The mode of the last acquisition of a group, behind which the next newcomer would wait. */
export function lastMode(group: SharedLockGroup): ServerMode {
  const last = group.waiting.at(-1);
  if (last !== undefined) return serverModeOf(last.mode);
  for (const { mode } of group.holders) if (mode.kind === 'exclusive') return 'exclusive';
  return group.holders.size > 0 ? 'shared' : group.serverMode;
}

/** The weakest lock that is enough for all acquisitions of a group. */
export function neededMode(group: SharedLockGroup): ServerMode {
  for (const { mode } of group.holders) if (mode.kind === 'exclusive') return 'exclusive';
  for (const { mode } of group.waiting) if (mode.kind === 'exclusive') return 'exclusive';
  return 'shared';
}

export function serverModeOf(mode: LockMode): ServerMode {
  return mode.kind === 'shared' ? 'shared' : 'exclusive';
}

/** Makes the grant of an acquisition. The server has just answered its session. */
export function grantTo(
  acquisition: AdvisoryAcquisition,
  session: AdvisorySession,
  token: string | null,
): Grant {
  const { now, request } = acquisition;
  const lost = new AbortController();
  const grant: Grant = {
    request,
    countedFrom: now(),
    session: { validUntil: () => now() + session.remainingMs },
    lost: lost.signal,
    ...(token === null ? undefined : { fencingToken: BigInt(token) }),
  };
  acquisition.grant = grant;
  acquisition.grantedAt = performance.now();
  acquisition.lost = lost;
  return grant;
}

/** Ends a hold without its holder's request. */
export function lose(acquisition: AdvisoryAcquisition, reason: LossReason): void {
  acquisition.lost?.abort(reason);
}
