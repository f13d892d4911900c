import type { LockManager } from '@locks/core';

/** Releases the lock. */
export type Release = () => Promise<unknown>;

/** One process's use of a lock library, on one connection of one client. */
export interface Session {
  /** `weight`: how many permits of a semaphore; 1 for everything else. */
  acquire(name: string, weight?: number): Promise<Release>;
  /** One `PING`, or the smallest request there is, through the same client: the unit of the hand-off gaps. */
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

/** A lock manager of ours, on a client of its own. */
export interface OpenLocks {
  readonly locks: LockManager;
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

/** Which module has a contender: a client process loads that module and no other client. */
export type StoreId = 'redis' | 'kinds' | 'postgres' | 'mysql' | 'zookeeper' | 'etcd' | 'local' | 'cohorts';

export interface Contender {
  readonly store: StoreId;
  readonly name: string;
  /** `floor`: the bare client, without a library. */
  readonly kind: 'floor' | 'ours' | 'peer';
  /** The bare use of the same client, to which this one is compared. */
  readonly floor: string;
  /** The packages whose versions are reported with the figures, as `package.json` names them. */
  readonly packages: readonly string[];
  open(url: string): Promise<Session>;
  /** Of those that are ours. */
  openLocks?(url: string, ttlMs: number): Promise<OpenLocks>;
}

/** The ttl of every lock of every contender, in milliseconds. */
export const TTL_MS = 30_000;

/** How the floor waits for a contended lock. */
export const POLL_MS = 10;

/** The release of the floor: compare and delete. */
export const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
