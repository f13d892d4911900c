import { BEAT_MS } from '../store/rules-backend.ts';
import { type BackendKind, hasEndsByTime, listens, type Plan, triesAgain } from './plan.ts';

/** After the last fault, somebody who waits gets on within this and the longest hold, in milliseconds. */
const PROGRESS_MS = 8_000;
/** How long `@locks/record-protocol` waits for an answer of a store of records, in milliseconds. */
const RECORD_ANSWER_MS = 5_000;
/** A stream of etcd that broke without a sign is found broken within this, twice over, in milliseconds. */
const ETCD_MS = 2 * 13_000;
/** A session of ZooKeeper that gets no answer ends within this: the longest one, and its handshakes, in milliseconds. */
const SESSION_MS = 2 * 2_000 + 1_000;
/** Waiters of PostgreSQL that poll do so within this; and a lost message to the others is made good within the other, in milliseconds. */
const POLL_MS = 250;
const UNHEARD_MS = 4_000;
/** A free resource is entered by whoever waits within this and the times of messages, in milliseconds. */
const IDLE_MS = 100;

/** How long something may take in a run, in milliseconds. */
export class TimeLimits {
  /** Of the leases of the run. */
  readonly shortestTtl: number;
  readonly longestTtl: number;
  /** Without a fault: a lease that was not renewed ends for its holder some milliseconds before it does in the store. */
  readonly clean: number;
  /** An attempt, its reply, the abandon and what goes before it on the same connection may each be slow. */
  readonly late: number;
  /**
   * How much longer than its ttl a store keeps a lease. A hand-off of Redis and PostgreSQL counts from the last request that found the waiter, while two
   * thirds of its ttl are left; a leader of etcd looks twice a second for leases that have ended.
   */
  readonly uncounted: number;
  /** What an ended process may leave behind: a ttl, behind a message that was on its way for long. */
  readonly leftover: number;
  /** How long a message may be on its way. */
  readonly delay: number;
  /** Between two moments at which somebody gets on, while others wait. */
  readonly progress: number;
  /** Without a lease that ends by its time the next waiter enters within this. */
  readonly idle: number;

  constructor(plan: Plan) {
    const { backend, network, faultsEndAt } = plan;
    const { latencyMs, slow, slowMs } = network;
    const operations = plan.processes.flatMap(({ clients }) =>
      clients.flatMap((client) => client.operations),
    );
    this.shortestTtl = Math.min(...operations.map(({ ttlMs }) => ttlMs));
    this.longestTtl = Math.max(100, ...operations.map(({ ttlMs }) => 2 * ttlMs));
    this.clean = 10 + 4 * latencyMs + 0.03 * this.longestTtl;
    this.late = slow > 0 ? 8 * slowMs : 0;
    this.uncounted = hasEndsByTime(plan) ? this.#uncountedOf(backend) : 0;
    this.delay = 2 * slowMs + this.longestTtl + PROGRESS_MS;
    this.leftover = faultsEndAt + this.delay;
    this.progress = Math.max(0, ...operations.map(({ holdMs }) => holdMs)) + this.longestTtl + PROGRESS_MS;
    if (plan.record !== undefined) this.progress += RECORD_ANSWER_MS;
    // A block keeps what it holds.
    this.progress += plan.thread?.maxBlockedMs ?? 0;
    this.leftover += plan.thread?.maxBlockedMs ?? 0;
    this.idle = idleOf(plan);
  }

  #uncountedOf(backend: BackendKind): number {
    if (backend === 'redis' || backend === 'postgres') return this.longestTtl / 3;
    return backend === 'etcd' ? 500 : 0;
  }
}

function idleOf(plan: Plan): number {
  const { network, maxPollMs, backend, cohort, record } = plan;
  // Those who count on a lease that is passed on wait for it so long, and then at the store.
  const promptMs = 30 * network.latencyMs + IDLE_MS + (cohort?.withinMs ?? 0);
  // MySQL cannot call, nor can some stores of records: each process asks.
  // A server of etcd serves watches that start in the past ten times a second, and a lost stream is found at last by its ping.
  if (backend === 'zookeeper') return promptMs + 100 + (network.lostPushes > 0 ? SESSION_MS : 0);
  if (backend === 'etcd') return promptMs + 300 + (network.lostPushes > 0 ? ETCD_MS : 0);
  // A lost wake-up is made good by a heartbeat or a poll.
  if (backend === 'sqlite') return promptMs + (network.lostPushes > 0 ? 2 * (500 + maxPollMs) : 0);
  // A listener that hears nothing any more is found by its next check, which the pool answers in its place.
  if (backend === 'postgres')
    return promptMs + (listens(plan) ? 0 : POLL_MS) + (network.lostPushes > 0 ? UNHEARD_MS : 0);
  if (triesAgain(plan) && record?.watches !== true) return promptMs + 2.5 * maxPollMs;
  if (network.lostPushes === 0) return promptMs;
  // A lost message is made good by the next check of its process, and perhaps by that of the next waiter.
  return promptMs + 3 * (backend === 'rules' || backend === 'quorum' ? BEAT_MS : maxPollMs);
}
