import type { AcquireRequest, Grant, LockMode, LossReason } from '@locks/core/backend';
import type { Session } from './session.ts';

export type ServerMode = 'exclusive' | 'shared';

/** One acquisition that holds or waits here. */
export interface Entry {
  readonly request: AcquireRequest;
  /** Core's clock. */
  readonly now: () => number;
  readonly arrivedAt: number;
  /** Differs from the request's after a downgrade. */
  mode: LockMode;
  run: Run;
  grant: Grant | undefined;
  grantedAt: number;
  /** Pushes a loss; made with the grant. */
  lost: AbortController | undefined;
  /** Tells who waits for the turn: a grant, or a hint to ask again. */
  wake: ((grant: Grant | undefined) => void) | undefined;
}

/**
 * Neighbours in the queue of one resource that are of this process: one session's lock, or its place in the server's
 * queue, serves them one after the other. Exclusive ones come first and shared ones after them, so that the lock only
 * ever has to be weakened.
 */
export interface Run {
  /** `parked`: no connection was left to stand in the queue with. */
  state: 'parked' | 'queued' | 'held' | 'over';
  session: Session | undefined;
  /** What is locked, or asked for, on the server. */
  serverMode: ServerMode;
  readonly holders: Set<Entry>;
  readonly waiting: Entry[];
  /** Settles when the wait in the server's queue is over, and a grant was confirmed. */
  turn: Promise<unknown> | undefined;
  /** Whoever comes to the server from now on comes later. */
  placed: boolean;
}

export function newRun(state: Run['state'], serverMode: ServerMode): Run {
  return {
    state,
    session: undefined,
    serverMode,
    holders: new Set(),
    waiting: [],
    turn: undefined,
    placed: state === 'held',
  };
}

/** The mode that whoever comes behind this run would stand behind. */
export function lastMode(run: Run): ServerMode {
  const last = run.waiting.at(-1);
  if (last !== undefined) return serverModeOf(last.mode);
  for (const { mode } of run.holders) if (mode.kind === 'exclusive') return 'exclusive';
  return run.holders.size > 0 ? 'shared' : run.serverMode;
}

/** The weakest lock that serves everybody in the run. */
export function neededMode(run: Run): ServerMode {
  for (const { mode } of run.holders) if (mode.kind === 'exclusive') return 'exclusive';
  for (const { mode } of run.waiting) if (mode.kind === 'exclusive') return 'exclusive';
  return 'shared';
}

export function serverModeOf(mode: LockMode): ServerMode {
  return mode.kind === 'shared' ? 'shared' : 'exclusive';
}

/** The grant of an entry whose session was just heard of. */
export function grantTo(entry: Entry, session: Session, token: string | null): Grant {
  const { now, request } = entry;
  const lost = new AbortController();
  const grant: Grant = {
    request,
    countedFrom: now(),
    session: { validUntil: () => now() + session.remainingMs },
    lost: lost.signal,
    ...(token === null ? undefined : { fencingToken: BigInt(token) }),
  };
  entry.grant = grant;
  entry.grantedAt = performance.now();
  entry.lost = lost;
  return grant;
}

/** Ends a hold behind its holder's back. */
export function lose(entry: Entry, reason: LossReason): void {
  entry.lost?.abort(reason);
}
