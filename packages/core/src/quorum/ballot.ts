import { faultOfGrant } from '../acquire/check-grant.ts';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '../backend/types.ts';

/** What came of asking the nodes. */
export interface Ballot {
  /** What each node granted; one that answers late is added. */
  readonly grants: (Grant | undefined)[];
  /** Lost, or given back: what a node grants from now on is abandoned. */
  over: boolean;
}

/** A grant of the majority. */
export interface QuorumGrant extends Grant {
  readonly ballot: Ballot;
}

/** Valid until `end`. Unless the nodes gave much less than the ttl, the lease only counts from a little earlier. */
export function quorumGrant(
  request: AcquireRequest,
  ballot: Ballot,
  startedAt: number,
  end: number,
): QuorumGrant {
  return end - startedAt < request.ttlMs / 2
    ? { request, countedFrom: startedAt, validForMs: end - startedAt, ballot }
    : { request, countedFrom: Math.min(startedAt, end - request.ttlMs), ballot };
}

/** A node's answer to be reckoned with: one whose grant is none counts as failed, and is asked to take it back. */
export function sound(attempt: Attempt, request: AcquireRequest, node: LockBackend, call: Call): Attempt {
  if (attempt.status !== 'granted') return attempt;
  const fault = faultOfGrant(attempt.grant, request.acquisitionId, node.capabilities, call.now());
  if (fault === undefined) return attempt;
  throw new Error(`the backend broke its contract: ${fault}`);
}

export function endOf(grant: Grant): number {
  return grant.countedFrom + (grant.validForMs ?? grant.request.ttlMs);
}

/** What one node granted, in the mode that the lease has by now. */
export function grantAt(grant: Grant, index: number): Grant | undefined {
  const own = (grant as Partial<QuorumGrant>).ballot?.grants[index];
  if (own === undefined) return undefined;
  const { acquisitionId, mode } = own.request;
  // The node's very own where nothing changed: it may have noted something on it. Never for another id (docs/spec.md §3.1).
  const same = acquisitionId === grant.request.acquisitionId && mode.kind === grant.request.mode.kind;
  return same ? own : { ...own, request: grant.request };
}
