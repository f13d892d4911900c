import type { NetworkOptions } from '../network/link.ts';
import type { Stall } from '../process/stall.ts';
import type { RecordPlan } from '../record/record-plan.ts';
import type { Interruption } from '../sqlite/interruption.ts';

/** What the simulated processes lock with. */
export type BackendKind = (typeof BACKEND_KINDS)[number];
export const BACKEND_KINDS = [
  'rules',
  'quorum',
  'redis',
  'mysql',
  'record',
  'etcd',
  'zookeeper',
  'sqlite',
  'postgres',
] as const;

/** How the runs of a seed are changed. */
export type PlanVariant = 'transfer' | 'thread';

/** Everything that one run does, as data: the seed draws it, and shrinking leaves parts of it out. */
export interface Plan {
  readonly backend: BackendKind;
  /** For what is drawn while the run goes on: latencies, which message is lost, ids. */
  readonly seed: number;
  readonly resources: readonly ResourcePlan[];
  readonly processes: readonly ProcessPlan[];
  readonly network: NetworkOptions;
  readonly faults: readonly FaultPlan[];
  /** True time in milliseconds after which no fault begins, and the network is sound. */
  readonly faultsEndAt: number;
  /** How much faster than true time the clock of each store runs. */
  readonly storeDrifts: readonly number[];
  /** What happens to the store itself; of the rules and of a quorum there are none. */
  readonly storeFaults: readonly StoreFaultPlan[];
  /** How long a step of a master takes to its replica, in milliseconds. */
  readonly replicaLagMs: number;
  /** How many connections a client of MySQL or PostgreSQL has. */
  readonly connectionLimit: number;
  /** How long a client of MySQL waits for an answer, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** How often a process checks its waiters at least, in milliseconds. */
  readonly maxPollMs: number;
  /** What a store of records is like; `undefined` of the others. */
  readonly record: RecordPlan | undefined;
  /** What the machine of a file of SQLite is like; `undefined` of the other stores. */
  readonly sqlite?: SqlitePlan;
  /** Set where every process uses cohorts (docs/backends/cohort.md). */
  readonly cohort: CohortPlan | undefined;
  /** Set where every process has a renewal thread (docs/spec.md §20). */
  readonly thread?: ThreadPlan;
  /** The part of the scripts that the server of Redis knows from before. */
  readonly knownScripts: number;
  /** Each script is compared with the rules of `@locks/core/rules`; only of Redis. */
  readonly refines: boolean;
  /** After each event everybody who believes to hold is looked for in the stores; to look at a lease reports its end. */
  readonly looksAtLeases: boolean;
}

export interface SqlitePlan {
  readonly platform: 'linux' | 'win32';
  /** The file has rows from before the machine was started. */
  readonly hasEarlierBoot: boolean;
  /** How long a poll of each process takes, in milliseconds. */
  readonly slowPollsMs: readonly number[];
}

export interface ThreadPlan {
  readonly maxBlockedMs: number;
  /** No block is too long, and nothing else goes wrong: no lease is lost. */
  readonly keepsAll: boolean;
}

/** How processes pass their leases on to their own waiters. */
export interface CohortPlan {
  readonly turns: number;
  readonly withinMs: number;
}

export interface ResourcePlan {
  readonly name: string;
  /** The permits of a semaphore; `undefined`: a lock for readers and writers. */
  readonly permits: number | undefined;
}

export interface ProcessPlan {
  readonly name: string;
  readonly drift: number;
  readonly wallOffset: number;
  readonly clients: readonly ClientPlan[];
}

/** A part of a program, which does one operation after the other. */
export interface ClientPlan {
  readonly name: string;
  readonly operations: readonly OperationPlan[];
}

export type OperationKind = 'acquire' | 'try' | 'run' | 'all' | 'steal' | 'force-release' | 'resize';

/** What the holder does in the middle of a hold. */
export type DuringHold =
  | 'nothing'
  | 'renew'
  | 'extend'
  | 'shorten'
  /** Two renewals are sent at once, the second one before the first is answered. */
  | 'longer, shorter'
  | 'shorter, longer'
  | 'downgrade'
  | 're-enter'
  | 're-enter twice';

export interface OperationPlan {
  readonly kind: OperationKind;
  /** Milliseconds before it begins, by the process's clock. */
  readonly afterMs: number;
  /** Indices in the plan's resources; `all` takes each of them. */
  readonly resources: readonly number[];
  readonly mode: 'exclusive' | 'shared';
  /** Of permits. */
  readonly weight: number;
  /** It asks for a lock where others ask for permits. */
  readonly isOdd: boolean;
  /** The new limit of a resize. */
  readonly limit: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renewal: 'auto' | 'manual';
  readonly holdMs: number;
  readonly during: DuringHold;
  /** The part of the hold, from 0 to 1, before it does that. */
  readonly duringAfter: number;
  /** `forget`: the lease is neither released nor renewed. */
  readonly end: 'release' | 'release twice' | 'forget' | 'transfer';
  /** How a lease goes on that is transferred. */
  readonly transfer?: TransferPlan;
  readonly abortAfterMs: number | undefined;
}

export interface TransferPlan {
  /** The index of the process that adopts the lease. */
  readonly to: number;
  /** How long the ticket is on its way, in milliseconds. */
  readonly afterMs: number;
  /** The ticket arrives twice. */
  readonly twice: boolean;
  readonly holdMs: number;
}

export type FaultPlan = { readonly at: number; readonly process: number } & (
  | { readonly kind: 'pause'; readonly ms: number }
  | ({ readonly kind: 'stall' } & Stall)
  /** Its event loop, and not its renewal thread. */
  | { readonly kind: 'block'; readonly ms: number }
  | { readonly kind: 'thread stands still'; readonly ms: number }
  | { readonly kind: 'thread ends' }
  | { readonly kind: 'application'; readonly act: ApplicationAct; readonly ms: number }
  /** The machine: its monotonic clock stands still too. */
  | { readonly kind: 'sleep'; readonly ms: number }
  /** `isNoticed`: its connections end, as when the process is killed; else nobody hears of it, as when the power of its machine fails. */
  | { readonly kind: 'crash'; readonly isNoticed: boolean }
  | { readonly kind: 'wall clock'; readonly ms: number }
  | { readonly kind: 'close'; readonly drainMs: number }
  /** It stands still in its next transaction, or is killed there. */
  | ({ readonly kind: 'in a transaction' } & Interruption)
  | { readonly kind: 'reset'; readonly store: number }
  | { readonly kind: 'store away'; readonly store: number; readonly ms: number }
  | {
      readonly kind: 'partition';
      readonly store: number;
      readonly direction: 'requests' | 'replies' | 'both';
      readonly ms: number;
    }
);

/** What an application does by the client that it shares with the locks. After `ms` it ends what it has begun. */
export type ApplicationAct = (typeof APPLICATION_ACTS)[number];
export const APPLICATION_ACTS = [
  'exec',
  'discard',
  /** It forgets its `MULTI`, until the connection ends. */
  'forget multi',
  'subscribe',
  /** Meanwhile the locks of this process are in another database. */
  'select',
  'script flush',
  'reset',
] as const;

export type StoreFaultPlan = { readonly at: number } & (
  | { readonly kind: 'restart'; readonly keepsData: boolean; readonly downMs: number }
  /** The replica becomes the master with what it has received. */
  | { readonly kind: 'failover'; readonly downMs: number }
  /** The keys of a slot are on two nodes: commands on several keys are refused. */
  | { readonly kind: 'slot migration'; readonly ms: number }
  /** The memory is full: one key is removed. */
  | { readonly kind: 'eviction' }
  /** The server forgets its scripts, as after `SCRIPT FLUSH`. */
  | { readonly kind: 'script flush' }
  /** Statements collide with others: the server undoes half of those that write, and says so. */
  | { readonly kind: 'collisions'; readonly ms: number }
  | { readonly kind: 'read-only'; readonly ms: number }
  /** The disk is full. */
  | { readonly kind: 'full'; readonly ms: number }
  /** Another leader: it gives each lease its whole ttl, and the one before answers keep-alives for a time from what it remembers. */
  | { readonly kind: 'election'; readonly downMs: number; readonly oldMs: number }
  /** A follower hears nothing of the others: it answers reads, and reports no session. */
  | { readonly kind: 'follower cut off'; readonly ms: number }
  /** The server is there, and does nothing: what comes is carried out afterwards. */
  | { readonly kind: 'stand still'; readonly ms: number }
  /** The history is compacted: watches cannot start in it any more. */
  | { readonly kind: 'compaction' }
  /** The server ends the sessions of all, as an operator does. */
  | { readonly kind: 'sessions end' }
  /** Somebody's transaction has locked the rows of a resource, whose index is given, for so long. */
  | { readonly kind: 'rows locked'; readonly resource: number; readonly ms: number }
  /** An application gives a connection of its pool back with a transaction in it, and ends the transaction so much later. */
  | {
      readonly kind: 'open transaction';
      readonly process: number;
      readonly begin: 'answered' | 'unanswered' | 'failed' | 'late';
      readonly works: boolean;
      readonly end: 'COMMIT' | 'ROLLBACK';
      readonly ms: number;
    }
  /** Or with a setting of its own. */
  | {
      readonly kind: 'left setting';
      readonly process: number;
      readonly setting: 'statement timeout' | 'search path' | 'read-only';
      readonly ms: number;
    }
  /** Or it keeps all of them for so long. */
  | { readonly kind: 'held connections'; readonly process: number; readonly ms: number }
  /** The server ends all streams, and its history is compacted or not. */
  | { readonly kind: 'streams end'; readonly compacts: boolean }
);

/** Whether nothing goes wrong in this run, except that messages take their time and clocks run apart. */
export function isClean(plan: Plan): boolean {
  return plan.faults.length === 0 && isSound(plan);
}

/** Whether no message is lost or late, and the store stays as it is. */
export function isSound(plan: Plan): boolean {
  return plan.network.lostPushes === 0 && isAnswering(plan);
}

/**
 * Whether nothing goes wrong in this run but that processes stand still: a session of ZooKeeper may end by that, and calls in it fail. One
 * that stands still in the middle of a turn may have the file of SQLite, which nobody else gets then.
 */
export function onlyStands(plan: Plan): boolean {
  return (
    plan.backend !== 'zookeeper' &&
    isSound(plan) &&
    plan.faults.every(({ kind }) => kind === 'pause' || (kind === 'stall' && plan.backend !== 'sqlite'))
  );
}

/** Whether the application makes the store refuse what the locks ask. */
export function isShared({ faults }: Plan): boolean {
  return faults.some(({ kind }) => kind === 'application');
}

/** Whether every request is answered in time, and the store stays as it is. */
function isAnswering(plan: Plan): boolean {
  const { network, storeFaults, record } = plan;
  const { slow, lostRequests, lostReplies, resent } = network;
  const { stale = 0, failed = 0 } = record ?? {};
  return (
    !hasSlowPolls(plan) &&
    storeFaults.length === 0 &&
    slow + lostRequests + lostReplies + resent + stale + failed === 0
  );
}

/** Whether a process stands still while it polls. */
function hasSlowPolls({ sqlite }: Plan): boolean {
  return sqlite?.slowPollsMs.some((ms) => ms > 0) === true;
}

/** Whether waiters of PostgreSQL are told of their turn; otherwise they poll. */
export function listens({ maxPollMs }: Plan): boolean {
  return maxPollMs > 100;
}

/** Whether a process decides on what it has read, and steps of others in between make it try again. */
export function triesAgain({ backend }: Plan): boolean {
  return backend === 'mysql' || backend === 'record' || backend === 'etcd' || backend === 'zookeeper';
}

/**
 * Whether every request that was sent comes to its store, once, and nobody stands still: then whoever gives up can undo what it
 * asked for, however late its answer comes. A reply may be lost only where no abandon overtakes its attempt.
 */
export function isUndoable(plan: Plan): boolean {
  const { backend, faults, storeFaults, network } = plan;
  const { slow, lostRequests, lostReplies, resent, ordered } = network;
  // A client of PostgreSQL closes a connection without an answer, and asks again on another one.
  if (backend === 'postgres') return isClean(plan);
  // Several requests are one step of MySQL or of a store of records, and of Redis where it does not know the script.
  if (triesAgain(plan) || (backend === 'redis' && lostReplies > 0)) return isClean(plan);
  const fails = faults.length + storeFaults.length + lostRequests + resent > 0 || hasSlowPolls(plan);
  return !fails && network.lostPushes === 0 && (lostReplies === 0 || (slow === 0 && ordered));
}

/** Whether nothing but a lost message keeps a waiter from entering at once what is free. */
export function isPrompt(plan: Plan): boolean {
  return plan.faults.length === 0 && isAnswering(plan) && !hasEndsByTime(plan);
}

/** Whether a lease may end by its time: where it is not renewed, what a part of the stores keeps of it ends by its ttl. */
export function hasEndsByTime(plan: Plan): boolean {
  return operationsOf(plan).some(
    ({ renewal, end, during }) =>
      renewal === 'manual' || end === 'forget' || end === 'transfer' || isShortening(during),
  );
}

/** Whether the holder renews for less than the ttl. */
export function isShortening(during: DuringHold): boolean {
  return during === 'shorten' || during === 'longer, shorter' || during === 'shorter, longer';
}

/**
 * Whether renewals come in time where nothing fails: what is left of a hand-off, half of its ttl, is enough for one that is sent
 * twice, since the server does not know its script yet.
 */
export function isRenewedInTime({ renewal, end, ttlMs }: OperationPlan, roundTripMs: number): boolean {
  return renewal === 'auto' && end !== 'forget' && ttlMs > 6 * roundTripMs;
}

/** Whether a lease may be left to a process that does not adopt it. */
export function handsOver(plan: Plan): boolean {
  return operationsOf(plan).some(({ end }) => end === 'transfer');
}

/** Whether an operator may end a lease. */
export function hasForcedEnds(plan: Plan): boolean {
  return operationsOf(plan).some(({ kind }) => kind === 'steal' || kind === 'force-release');
}

function operationsOf({ processes }: Plan): OperationPlan[] {
  return processes.flatMap(({ clients }) => clients.flatMap(({ operations }) => operations));
}
