// One file: the methods of the contract, each over a majority of the nodes. What has a thought of its own stands beside it.
import {
  type AcquireRequest,
  type Attempt,
  type Call,
  type Grant,
  type Holder,
  type InspectOptions,
  type LockBackend,
  type LossReason,
  NoAnswerError,
  refuseAfterClose,
  type RenewalStatus,
  renewalStatusOf,
  type RenewItem,
  type ResourceState,
} from '@locks/core/backend';
import { acquireAgain } from './acquire-again.ts';
import { BackgroundCalls } from './background-calls.ts';
import {
  endOf,
  endTrials,
  grantAt,
  grantsOf,
  noGrants,
  type QuorumGrant,
  quorumGrant,
  type QuorumGrants,
  trialsOf,
  type Trials,
  validated,
  withoutGrant,
} from './quorum-grants.ts';
import { capabilitiesOf, type QuorumCapabilities } from './quorum-capabilities.ts';
import { type Quorum, type QuorumOptions, resolveQuorum } from './quorum-options.ts';
import { poll, type Votes } from './poll-nodes.ts';
import { QuorumError } from './quorum-error.ts';

/** Pause after a failed attempt, in ms, plus up to as much again at random: rivals must not split the nodes for ever. */
const RETRY_MS = 25;
/** Clock drift that is allowed for whatever the ttl, in milliseconds. */
const DRIFT_MS = 2;
/** Part of the caller's time that nodes have for an abandon. */
const ABANDON_PART = 0.75;

/** A backend that holds a lock on most of its nodes. */
export type QuorumBackend = LockBackend<QuorumCapabilities>;

// setup: import { createLocks } from '@locks/core'; import { quorumBackend } from '@locks/quorum';
// setup: import { redisBackend } from '@locks/redis-ioredis'; import type { Redis } from 'ioredis'; declare const a: Redis, b: Redis, c: Redis;
/**
 * One lock over several independent stores: held while more than half of them grant it, so that a minority may fail or
 * hang. The Redlock algorithm (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/), over backends of any
 * kind with tenure `lease`. It has no order and no fencing token: see docs/backends/quorum.md for what it does not promise.
 *
 * @param backends - one for each store; they are closed with this one. Stores must not be replicas of each other.
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(quorumBackend([redisBackend(a), redisBackend(b), redisBackend(c)]));
 * ```
 */
export function quorumBackend(backends: readonly LockBackend[], options?: QuorumOptions): QuorumBackend {
  return new NodesBackend(resolveQuorum(backends, options));
}

// One class, of more than 400 lines: each step depends on what the others may have left on a node.
class NodesBackend implements QuorumBackend {
  readonly spec = 'locks-backend/1';
  readonly name = 'quorum';
  readonly capabilities: QuorumCapabilities;
  readonly releaseBudgetMs?: number;
  readonly #quorum: Quorum;
  readonly #background: BackgroundCalls;
  readonly #nodeGrants = new WeakMap<AcquireRequest, QuorumGrants>();
  readonly downgrade?: NonNullable<LockBackend['downgrade']>;
  readonly forceRelease?: NonNullable<LockBackend['forceRelease']>;

  constructor(quorum: Quorum) {
    this.#quorum = quorum;
    this.#background = new BackgroundCalls(quorum.nodeTimeoutMs);
    this.capabilities = capabilitiesOf(quorum);
    // A release needs a majority, so it may take as long as the slowest node (docs/spec.md §2.5).
    const budgets = quorum.nodes.flatMap(({ releaseBudgetMs = [] }) => releaseBudgetMs);
    if (budgets.length > 0) this.releaseBudgetMs = Math.max(...budgets);
    const { modes, features } = this.capabilities;
    if (modes.includes('exclusive') && modes.includes('shared')) this.downgrade = this.#downgrade.bind(this);
    if (features.includes('force-release')) this.forceRelease = this.#forceRelease.bind(this);
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, _enqueue: boolean, call: Call): Promise<Attempt> {
    const { majority, nodes } = this.#quorum;
    // A call that is sent again finds its id given up: late answers to the first are abandoned on their nodes (docs/spec.md §2.2).
    if (this.#nodeGrants.get(request)?.over) return contended();
    const startedAt = call.now();
    const nodeGrants = noGrants(nodes);
    const { grants, unanswered } = nodeGrants;
    this.#nodeGrants.set(request, nodeGrants);
    const votes = await this.#poll<Attempt, Votes<Attempt>>(
      call,
      async (node, nodeCall, index) => {
        const isAnswered = (): void => void unanswered.delete(index);
        // A node that is given up counts as failed.
        nodeCall.signal?.addEventListener('abort', isAnswered, { once: true });
        try {
          return validated(await node.attempt(request, false, nodeCall), request, node, nodeCall);
        } finally {
          isAnswered();
        }
      },
      (sofar) => {
        const granted = grantsIn(sofar).filter(Boolean).length;
        // Once a majority is reached or impossible, nobody waits for the other nodes.
        return granted >= majority || granted + sofar.pending < majority ? snapshot(sofar) : undefined;
      },
      (node, answer, index) => {
        // The abandon may have overtaken this attempt on its way, also where only an error came back (docs/spec.md §2.2).
        if (nodeGrants.over) {
          if (answer === undefined || answer.status === 'granted')
            void this.#background.abandon(node, request, call);
        }
        // A grant after the decision is renewed and released with the others.
        else if (answer?.status === 'granted') grants[index] = answer.grant;
      },
    );
    for (const [index, grant] of grantsIn(votes).entries()) grants[index] ??= grant;
    if (grants.filter(Boolean).length >= majority) {
      const end = this.#endOfMost(grants) - this.#drift(request.ttlMs);
      if (end > call.now()) {
        return { status: 'granted', grant: quorumGrant(request, nodeGrants, startedAt, end) };
      }
    }
    nodeGrants.over = true;
    // Abandons are awaited, so that rivals are not in each other's way; on a node that gave no answer, the abandon runs in the
    // background.
    const cleanUp = nodes.map((node, index) =>
      votes.answers[index] === undefined || grants[index]
        ? this.#background.abandon(node, request, call)
        : undefined,
    );
    await Promise.all(cleanUp.flatMap((done, index) => (done !== undefined && grants[index] ? [done] : [])));
    const conflict = votes.answers.find((answer) => answer?.status === 'conflict');
    if (conflict !== undefined) return conflict;
    if (votes.failures.length > nodes.length - majority) throw this.#error('acquire', votes);
    return contended();
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    const { majority, nodes } = this.#quorum;
    const nodeGrants = this.#nodeGrants.get(request);
    if (nodeGrants !== undefined) nodeGrants.over = true;
    await this.#poll<true, true>(
      call,
      async (node, nodeCall) => {
        await node.abandon(request, nodeCall);
        return true;
      },
      (votes) => {
        if (votes.failures.length > nodes.length - majority) throw this.#error('abandon', votes);
        // An abandon waits for all nodes that answer: a grant on a minority would still be in the way of others.
        return votes.pending === 0 ? true : undefined;
      },
      undefined,
      // A minority that hangs must not make the whole abandon fail.
      (call.deadline - call.now()) * ABANDON_PART,
    );
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const trials = items.map(({ grant }) => trialsOf(grant));
    const asked = items.map(({ grant }) => [...grantsOf(grant)]);
    let decided: readonly RenewalStatus[] | undefined;
    let answered: readonly (NodeRenewalStatuses | undefined)[] = [];
    // Nodes that answer after the decision too: the one that came back may always be the slowest.
    const heal = (answer: NodeRenewalStatuses | undefined, index: number): void => {
      for (const [at, item] of items.entries()) {
        // A lease that has ended is never made again: it may have been released by force.
        if (answer === undefined || decided?.[at]?.status !== 'held') continue;
        if ((answer[at]?.status ?? 'lost') !== 'lost') continue;
        // A late answer says nothing of a grant that it was not asked for.
        if (grantsOf(item.grant)[index] === asked[at]?.[index])
          acquireAgain(item, index, this.#quorum.nodes[index] as LockBackend, this.#background, call);
      }
    };
    const statuses = await this.#poll<NodeRenewalStatuses, readonly RenewalStatus[]>(
      call,
      async (node, nodeCall, index) => {
        const there = items.map(({ grant, ttlMs }) => ({
          grant: grantAt(grant, index),
          other: withoutGrant(grant, index),
          ttlMs,
        }));
        const known = there.flatMap(({ grant, ttlMs }) => (grant === undefined ? [] : [{ grant, ttlMs }]));
        const answer = known.length === 0 ? [] : await node.renew(known, nodeCall);
        let next = 0;
        return there.map(({ grant, other }) =>
          grant === undefined ? other : renewalStatusOf(answer, next++),
        );
      },
      (votes) => {
        const renewalStatuses = items.map(({ ttlMs }, item) =>
          this.#renewalStatus('renew', votes, item, ttlMs, trials[item] as Trials),
        );
        if (renewalStatuses.some((renewalStatus) => renewalStatus === undefined)) return undefined;
        answered = [...votes.answers];
        return (decided = renewalStatuses as readonly RenewalStatus[]);
      },
      (_node, answer, index) => heal(answer, index),
    );
    for (const [at, { grant }] of items.entries()) {
      if (statuses[at]?.status === 'held') endTrials(grant, trials[at] as Trials);
      else if (statuses[at]?.status === 'lost') this.#giveUp(grant, call);
    }
    for (const [index, answer] of answered.entries()) heal(answer, index);
    return statuses;
  }

  /** Abandons a lost lease on all nodes: a minority may hold it yet, also one that was acquired again meanwhile. */
  #giveUp(grant: Grant, call: Call): void {
    const { nodeGrants } = grant as Partial<QuorumGrant>;
    // A release that is under way asks all nodes by itself, and would find nothing on those where an abandon overtook it.
    if (nodeGrants?.over === true) return;
    if (nodeGrants !== undefined) nodeGrants.over = true;
    for (const node of this.#quorum.nodes) void this.#background.abandon(node, grant.request, call);
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held'> {
    const { majority, nodeTimeoutMs } = this.#quorum;
    const { nodeGrants } = grant as Partial<QuorumGrant>;
    if (nodeGrants !== undefined) nodeGrants.over = true;
    const trials = trialsOf(grant);
    // Core sends a release again before its first sending was answered, and an answer to either counts (docs/spec.md §2.5).
    const unhurried: Call = { now: () => call.now(), deadline: call.now() + nodeTimeoutMs };
    return this.#poll<'released' | 'not-held' | 'unknown', 'released' | 'not-held'>(
      unhurried,
      async (node, nodeCall, index) => {
        const own = grantAt(grant, index);
        if (own !== undefined) {
          const answer = await node.release(own, nodeCall);
          return trials.has(index) ? 'not-held' : answer;
        }
        // The node may have granted after the majority had.
        await node.abandon(grant.request, nodeCall);
        return 'not-held';
      },
      (votes) => {
        const released = votes.answers.filter(
          (answer) => answer === 'released' || answer === 'unknown',
        ).length;
        if (released >= majority) return 'released';
        if (votes.pending > 0) return undefined;
        if (released + votes.failures.length >= majority) throw this.#error('release', votes);
        return 'not-held';
      },
    );
  }

  async inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    const { majority, nodes } = this.#quorum;
    const votes = await this.#answersOfMost('inspect', call, (node, nodeCall) =>
      node.inspect(resource, nodeCall, options),
    );
    const byId = new Map<string, Holder[]>();
    for (const holder of votes.flatMap(({ holders }) => holders)) {
      byId.set(holder.acquisitionId, [...(byId.get(holder.acquisitionId) ?? []), holder]);
    }
    const holders = [...byId.values()]
      // Nodes that did not answer may have the holder too.
      .filter((seen) => seen.length + nodes.length - votes.length >= majority)
      .map((seen) => summary(seen, majority));
    return { name: resource, holders, waiters: [] };
  }

  async ping(call: Call): Promise<void> {
    const { majority, nodes } = this.#quorum;
    await this.#poll<true, true>(
      call,
      async (node, nodeCall) => {
        if (node.ping === undefined) await node.inspect('ping', nodeCall);
        else await node.ping(nodeCall);
        return true;
      },
      (votes) => {
        if (votes.failures.length > nodes.length - majority) throw this.#error('answer', votes);
        return votes.answers.filter(Boolean).length >= majority ? true : undefined;
      },
    );
  }

  /** Prepares every node: one that was left out would be of no use until somebody prepares it. */
  async prepare(call: Call): Promise<void> {
    const { nodes } = this.#quorum;
    const prepared = await Promise.allSettled(nodes.map(async (node) => node.prepare?.(call)));
    const failures = prepared.flatMap((one, index) =>
      one.status === 'rejected' ? [{ node: nodes[index] as LockBackend, error: one.reason as unknown }] : [],
    );
    if (failures.length > 0) throw new QuorumError('prepare', nodes.length, failures);
  }

  isRetryable(error: unknown): boolean {
    return (
      error instanceof QuorumError &&
      error.failures.some(
        ({ node, error: cause }) => cause instanceof NoAnswerError || node.isRetryable(cause),
      )
    );
  }

  async close(): Promise<void> {
    await this.#background.close();
    const closed = await Promise.allSettled(this.#quorum.nodes.map(async (node) => node.close()));
    const failed = closed.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  #downgrade(grant: Grant, call: Call): Promise<RenewalStatus> {
    const trials = trialsOf(grant);
    return this.#poll<NodeRenewalStatuses, RenewalStatus>(
      call,
      async (node, nodeCall, index) => {
        const own = grantAt(grant, index);
        if (own === undefined) return [withoutGrant(grant, index)];
        return [renewalStatusOf([await node.downgrade?.(own, nodeCall)], 0)];
      },
      (votes) => this.#renewalStatus('downgrade', votes, 0, 0, trials),
    );
  }

  async #forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const ended = await this.#answersOfMost('release by force', call, async (node, nodeCall) =>
      node.forceRelease?.(resource, expectedId, nodeCall),
    );
    const byId = new Map(
      ended.flatMap((holders) => holders ?? []).map((holder) => [holder.acquisitionId, holder]),
    );
    return [...byId.values()].map((holder) => summary([holder], 1));
  }

  /** The status of one item, by the answers of the nodes that count; `undefined` while more answers are needed. */
  #renewalStatus(
    doing: string,
    votes: Votes<NodeRenewalStatuses>,
    item: number,
    ttlMs: number,
    trials: Trials,
  ): RenewalStatus | undefined {
    const { majority, nodes } = this.#quorum;
    const validities: number[] = [];
    const reasons: (LossReason | undefined)[] = [];
    for (const [index, answer] of votes.answers.entries()) {
      if (answer === undefined) continue;
      const renewalStatus = trials.has(index) ? undefined : answer[item];
      if (renewalStatus?.status === 'held') validities.push(renewalStatus.validForMs ?? ttlMs);
      // A node that never granted the lease does not hold it either.
      else if (renewalStatus?.status !== 'unknown') reasons.push(renewalStatus?.reason);
    }
    if (validities.length >= majority) {
      validities.sort((a, b) => b - a);
      const validForMs = (validities[majority - 1] as number) - this.#drift(ttlMs);
      return ttlMs === 0 ? { status: 'held' } : { status: 'held', validForMs };
    }
    if (reasons.length > nodes.length - majority) {
      return { status: 'lost', reason: reasons.find((reason) => reason !== undefined) ?? 'force-released' };
    }
    return votes.pending > 0 ? undefined : { status: 'unknown', error: this.#error(doing, votes) };
  }

  async #answersOfMost<T>(
    doing: string,
    call: Call,
    ask: (node: LockBackend, nodeCall: Call) => Promise<T>,
  ): Promise<readonly T[]> {
    const { majority, nodes } = this.#quorum;
    return this.#poll<{ readonly value: T }, readonly T[]>(
      call,
      async (node, nodeCall) => ({ value: await ask(node, nodeCall) }),
      (votes) => {
        if (votes.failures.length > nodes.length - majority) throw this.#error(doing, votes);
        if (votes.pending > 0) return undefined;
        return votes.answers.flatMap((answer) => (answer === undefined ? [] : [answer.value]));
      },
    );
  }

  #poll<T, R>(
    call: Call,
    ask: (node: LockBackend, nodeCall: Call, index: number) => Promise<T>,
    decide: (votes: Votes<T>) => R | undefined,
    late?: (node: LockBackend, answer: T | undefined, index: number) => void,
    limitMs = Number.POSITIVE_INFINITY,
  ): Promise<R> {
    const { nodes, nodeTimeoutMs } = this.#quorum;
    return poll(nodes, Math.max(1, Math.min(nodeTimeoutMs, limitMs)), call, ask, decide, late);
  }

  /** The time at which the first grant of a majority ends: until then a majority holds the lease (docs/spec.md §1.2). */
  #endOfMost(grants: readonly (Grant | undefined)[]): number {
    const ends = grants.flatMap((grant) => (grant ? [endOf(grant)] : [])).sort((a, b) => b - a);
    return ends[this.#quorum.majority - 1] as number;
  }

  #drift(ttlMs: number): number {
    return ttlMs * this.#quorum.driftFactor + DRIFT_MS;
  }

  #error(doing: string, { failures }: Votes<unknown>): QuorumError {
    return new QuorumError(doing, this.#quorum.nodes.length, [...failures]);
  }
}

function contended(): Attempt {
  return { status: 'contended', retryAfterMs: RETRY_MS * (1 + Math.random()) };
}

type NodeRenewalStatuses = readonly (RenewalStatus | undefined)[];

function grantsIn({ answers }: Votes<Attempt>): (Grant | undefined)[] {
  return answers.map((answer) => (answer?.status === 'granted' ? answer.grant : undefined));
}

/** Copies the votes: later answers do not change the copy. */
function snapshot<T>({ answers, failures, pending }: Votes<T>): Votes<T> {
  return { answers: [...answers], failures: [...failures], pending };
}

/**
 * Merges what the nodes know of one holder: its hold ends when the first of a majority ends. The token of a single node is no
 * token of the quorum.
 */
function summary(seen: readonly Holder[], majority: number): Holder {
  const { fencingToken: _, ...holder } = seen[0] as Holder;
  const ends = seen.flatMap(({ expiresInMs }) => (expiresInMs === undefined ? [] : [expiresInMs]));
  const end = ends.sort((a, b) => b - a)[majority - 1];
  return end === undefined ? holder : { ...holder, expiresInMs: end };
}
