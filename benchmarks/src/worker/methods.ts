import type { StoreId } from '../contenders/contender.ts';
import type { ClientCounts } from '../measure/client-counts.ts';
import type { Hold } from '../measure/history.ts';

/** What a worker process can be asked to do. */
export interface WorkerMethods {
  /** Opens the session of a contender; the loops and contentions after it run on that session. */
  open(store: StoreId, contender: string, url: string): Promise<void>;
  loop(task: LoopTask): Promise<LoopResult>;
  contend(task: ContendTask): Promise<Contended>;
  ping(count: number, restMs: number): Promise<Pings>;
  /** What this process has sent since it began, as far as its clients count. */
  sent(): Promise<ClientCounts>;

  /** Opens a lock manager of ours; the methods below work on it. */
  openLocks(store: StoreId, contender: string, url: string, ttlMs: number): Promise<void>;
  /** Acquires these locks and keeps them; returns how many timers that made. */
  holdAll(names: readonly string[]): Promise<number>;
  /** Keeps the locks for `ms` and returns what that did to the event loop. */
  watch(ms: number): Promise<Watched>;
  /** Waits for these held locks; resolves when all of them queue. */
  queueUp(names: readonly string[]): Promise<void>;
  /** Waits for each of these locks and releases it at once; returns the times of entry, by the machine's clock. */
  enterAll(names: readonly string[]): Promise<number[]>;
  /** Resolves when so many acquisitions wait for each of these locks. */
  untilWaiting(names: readonly string[], waiters: number): Promise<void>;
  /** When the leases of these locks end in the store, by the machine's clock; where they have no end, now. */
  endsOf(names: readonly string[]): Promise<number[]>;
  /** Releases all locks, and ends all waits. */
  letGo(): Promise<void>;
  /** Acquires and releases each of `count` distinct names; returns the heap in use before and after, in bytes. */
  churn(count: number, lanes: number): Promise<{ readonly before: number; readonly after: number }>;
  coreCost(pairs: number): Promise<CoreCost>;
  /** Acquires and keeps so many more locks, each with a name of its own. */
  holdMore(count: number, lanes: number): Promise<Grown>;
  /** Lists what is held or waited for; gives how much that is, 0 where the store has no such list. */
  list(): Promise<number>;
  /** Takes a lock, and lets so many waiters ask for it at once; resolves when all of them queue. */
  join(name: string, waiters: number): Promise<Grown>;
  /** Releases that lock, and resolves with the milliseconds until all who queue have entered and left, one after the other. */
  serve(): Promise<number>;

  /** Acquires a lock by the opened session, and keeps it until this process ends. */
  hold(name: string): Promise<void>;
  /** Lets so many waiters ask for it; resolves at once. */
  waitInVain(name: string, waiters: number): Promise<void>;

  /** Processor time of this process since it began, in microseconds, and how often its threads went to sleep. */
  spent(): Promise<{ readonly cpuMicros: number; readonly wakeUps: number }>;
  /** Opens many lock managers, each with a client of its own; gives the bytes of the heap that each uses. */
  openFleet(task: FleetTask): Promise<number>;
  /** Each of them acquires a lock, and keeps it. */
  holdInFleet(): Promise<void>;
  /** Each of them waits for the lock of the next one; resolves when all of them queue, or one has entered. */
  waitInFleet(): Promise<void>;
  /** Whether none has entered until now: no lease has ended. */
  isFleetIntact(): Promise<boolean>;
  /** Opens lock managers that want one lock. */
  openCrowd(task: CrowdTask): Promise<void>;
  /** Each of them enters and leaves so many times; resolves at once. */
  beginCrowd(turns: number): Promise<void>;
  /** The first of them acquires the lock, and keeps it. */
  holdCrowd(): Promise<void>;
  crowdCounts(): Promise<CrowdCounts>;
}

/** The lock managers of one process that are a part of a crowd. */
export interface CrowdTask {
  readonly store: StoreId;
  readonly contender: string;
  readonly url: string;
  readonly ttlMs: number;
  readonly name: string;
  readonly clients: number;
}

/** What has become of a part of a crowd so far. */
export interface CrowdCounts {
  readonly entered: number;
  /** Releases that rejected: the lock stays for its ttl. */
  readonly failedReleases: number;
  readonly failedAcquires: number;
}

/** The managers of one process, which are a part of all. */
export interface FleetTask {
  readonly store: StoreId;
  readonly contender: string;
  readonly url: string;
  readonly ttlMs: number;
  /** The number of the first. */
  readonly first: number;
  readonly count: number;
  /** How many all processes have together. */
  readonly total: number;
}

/** What more of something cost the client. */
export interface Grown {
  readonly elapsedMs: number;
  /** For how long the event loop stood still at most. */
  readonly loopDelayMs: number;
  /** The heap in use that it added, in bytes. */
  readonly heapBytes: number;
}

export interface LoopTask {
  /** One lane for each: it acquires and releases its name again and again. */
  readonly names: readonly string[];
  readonly forMs: number;
}

export interface LoopResult {
  readonly pairs: number;
  readonly elapsedMs: number;
  /** Processor time of the client's thread, in microseconds. */
  readonly cpuMicros: number;
  /** How long each acquire took, in milliseconds. */
  readonly waits: Float64Array;
  /** How long each acquire and release took together. */
  readonly wholes: Float64Array;
}

export interface ContendTask {
  readonly name: string;
  readonly waiters: number;
  /** The weight of each waiter, repeated in turn; without it all are alike. */
  readonly weights?: readonly number[];
  /** How many times each waiter takes the lock. */
  readonly turns: number;
  readonly sectionMs: number;
  /** On the machine's clock: when all waiters ask at once, and when the last of them must have left. */
  readonly startAt: number;
  readonly stopAt: number;
}

export interface Contended {
  readonly holds: readonly Hold[];
  /** Since when each waiter that was not served in time waits; it goes on waiting. */
  readonly unservedSince: readonly number[];
}

/** Median round trips of `PING`, in milliseconds. */
export interface Pings {
  /** One after the other. */
  readonly busyMs: number;
  /** Each after a rest, in which client and server become idle as they do in a critical section. */
  readonly restedMs: number;
  /** The shortest of all. */
  readonly leastMs: number;
}

export interface Watched {
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  /** Leases that were still valid at the end. */
  readonly valid: number;
}

/** Processor time of the calling thread in microseconds for one acquire and release. */
export interface CoreCost {
  readonly withCore: number;
  readonly bareBackend: number;
}
