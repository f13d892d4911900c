import {
  type AcquireRequest,
  type Attempt,
  type Call,
  type Grant,
  grantFault,
  type LockBackend,
  NoAnswerError,
  type RenewalStatus,
} from '@locks/core/backend';

/**
 * How a node stands that is acquired again: asked, or granted and on trial, until a majority without the node has confirmed the lease
 * by a renewal that was sent after its grant. Only then a majority has held at every moment, and the node counts (docs/spec.md
 * §4.7).
 */
type AcquiredAgain = 'asked' | 'on-trial';

/** The grants of one attempt. */
export interface QuorumGrants {
  /** The grant of each node; those that come late are added. */
  readonly grants: (Grant | undefined)[];
  /** The nodes whose answers to the attempt may still come: each may have granted. */
  readonly unanswered: Set<number>;
  /** The nodes that are acquired again and do not count yet. */
  readonly again: Map<number, AcquiredAgain>;
  /** Set once the attempt failed, or its lease was released: later grants of nodes are abandoned. */
  over: boolean;
}

/** The grants of an attempt that no node has answered. */
export function noGrants(nodes: readonly LockBackend[]): QuorumGrants {
  return {
    grants: nodes.map(() => undefined),
    unanswered: new Set(nodes.keys()),
    again: new Map(),
    over: false,
  };
}

/** The nodes of a lease that do not count yet, each with its grant, if it has one. */
export type Trials = ReadonlyMap<number, Grant | undefined>;

export function trialsOf(grant: Grant): Trials {
  const trials = new Map<number, Grant | undefined>();
  const { nodeGrants } = grant as Partial<QuorumGrant>;
  for (const [index, state] of nodeGrants?.again ?? [])
    if (state === 'on-trial') trials.set(index, grantsOf(grant)[index]);
  return trials;
}

/** Lets nodes count whose trials a renewal has confirmed, unless they were acquired once more meanwhile. */
export function endTrials(grant: Grant, trials: Trials): void {
  const { nodeGrants } = grant as Partial<QuorumGrant>;
  if (nodeGrants === undefined) return;
  for (const [index, onTrial] of trials)
    if (nodeGrants.grants[index] === onTrial) nodeGrants.again.delete(index);
}

/** A grant of the majority. */
export interface QuorumGrant extends Grant {
  readonly nodeGrants: QuorumGrants;
}

/**
 * Makes a grant that is valid until `end`. Unless the nodes granted much less than the ttl, the grant has the whole ttl,
 * counted from a little earlier.
 */
export function quorumGrant(
  request: AcquireRequest,
  nodeGrants: QuorumGrants,
  startedAt: number,
  end: number,
): QuorumGrant {
  return end - startedAt < request.ttlMs / 2
    ? { request, countedFrom: startedAt, validForMs: end - startedAt, nodeGrants }
    : { request, countedFrom: Math.min(startedAt, end - request.ttlMs), nodeGrants };
}

/** The answer of a node, with its grant checked: a node whose grant is invalid counts as failed, and abandons it. */
export function validated(attempt: Attempt, request: AcquireRequest, node: LockBackend, call: Call): Attempt {
  if (attempt.status !== 'granted') return attempt;
  const fault = grantFault(attempt.grant, request.acquisitionId, node.capabilities, call.now());
  if (fault === undefined) return attempt;
  throw new Error(`the backend broke its contract: ${fault}`);
}

export function endOf(grant: Grant): number {
  return grant.countedFrom + (grant.validForMs ?? grant.request.ttlMs);
}

/** The grant of each node, by its index. */
export function grantsOf(grant: Grant): readonly (Grant | undefined)[] {
  return (grant as Partial<QuorumGrant>).nodeGrants?.grants ?? [];
}

/** The grant of one node, in the present mode of the lease. */
export function grantAt(grant: Grant, index: number): Grant | undefined {
  const own = grantsOf(grant)[index];
  if (own === undefined) return undefined;
  const { acquisitionId, mode } = own.request;
  // An unchanged grant stays the node's own object, to which the node may have added; a grant of another id never does
  // (docs/spec.md §3.1).
  const same = acquisitionId === grant.request.acquisitionId && mode.kind === grant.request.mode.kind;
  return same ? own : { ...own, request: grant.request };
}

/**
 * The status of a lease at a node that is not known to have granted it: unknown while the node may still answer the attempt, and for
 * a lease of another instance, which alone has the grants of the nodes (docs/spec.md §4.8); otherwise `undefined`, since the node does
 * not hold the lease.
 */
export function withoutGrant(grant: Grant, index: number): RenewalStatus | undefined {
  const { nodeGrants } = grant as Partial<QuorumGrant>;
  if (nodeGrants === undefined)
    return { status: 'unknown', error: new Error('another instance has the grants of the nodes') };
  const mayHold = nodeGrants.unanswered.has(index);
  return mayHold ? { status: 'unknown', error: new NoAnswerError('the attempt is under way') } : undefined;
}
