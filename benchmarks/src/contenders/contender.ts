import { setTimeout as delay } from 'node:timers/promises';
import { createLocks, type BaseLease, type LockManager, type MultiLease } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';

/** Releases the lock. */
export type Release = () => Promise<unknown>;

/** `weight`: how many permits of a semaphore; 1 for everything else. */
export type Acquire = (name: string, weight?: number) => Promise<Release>;

/** One process's use of a lock library, on one connection of one client. */
export interface Session {
  readonly acquire: Acquire;
  /** One `PING`, or the smallest request there is, through the same client: the unit of the hand-off gaps. */
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

/** A lock manager of ours, on a client of its own. */
export interface OpenLocks extends Omit<Session, 'acquire'> {
  readonly locks: LockManager;
}

/** Which module has a contender. */
export type StoreId =
  | 'redis'
  | 'kinds'
  | 'postgres'
  | 'mysql'
  | 'zookeeper'
  | 'etcd'
  | 'dynamodb'
  | 's3'
  | 'nats'
  | 'mongodb'
  | 'local'
  | 'files'
  | 'cohorts';

/** Who takes part in a suite. */
export interface Contender {
  readonly store: StoreId;
  readonly name: string;
  /** `floor`: the bare client, without a library. */
  readonly kind: 'floor' | 'ours' | 'peer';
  /** The bare use of the same client, to which this one is compared. */
  readonly floor: string;
  /** The packages whose versions are reported with the figures, as `package.json` names them. */
  readonly packages: readonly string[];
  /** The rows in which it takes part. @defaultValue all of its suite */
  readonly rows?: readonly string[];
  open(url: string): Promise<Session>;
  /** Of those that are ours. */
  openLocks?(url: string, ttlMs: number): Promise<OpenLocks>;
}

/** A client library, and how it connects. It is loaded when it is used: a client process has that of one store only. */
export interface Client<C> {
  readonly packages: readonly string[];
  connect(url: string): Promise<Connection<C>>;
}

export interface Connection<C> {
  readonly client: C;
  ping(): Promise<unknown>;
  close(): unknown;
}

/** The ttl of every lock of every contender, in milliseconds. */
export const TTL_MS = 30_000;

/** How the floor waits for a contended lock. */
export const POLL_MS = 10;

/** How the floor waits for a lock in a store that is far away, or asks for money: 100 ms with jitter. */
export async function pauseBetweenPolls(): Promise<void> {
  await delay(50 + 100 * Math.random());
}

export const waitForever = { waitMs: Number.POSITIVE_INFINITY };

type What = Pick<Contender, 'store' | 'name' | 'rows'> & {
  /** @defaultValue itself */
  readonly floor?: string;
  /** Beside those of the client. */
  readonly packages?: readonly string[];
};

/** The bare client, or another library on it. */
export function foreign<C>(
  { floor, packages = [], ...what }: What & Pick<Contender, 'kind'>,
  client: Client<C>,
  acquireWith: (client: C) => Acquire | Promise<Acquire>,
): Contender {
  return {
    ...what,
    floor: floor ?? what.name,
    packages: [...packages, ...client.packages],
    async open(url) {
      const { client: opened, ping, close } = await client.connect(url);
      return { acquire: await acquireWith(opened), ping, close: async () => void (await close()) };
    },
  };
}

type AcquireOurs = (locks: LockManager, name: string, weight: number) => Promise<BaseLease | MultiLease>;

export const exclusive: AcquireOurs = (locks, name) => locks.lock(name).acquire(waitForever);

/** A backend of ours with core on top, as applications use it. */
export function ours(
  { floor, packages = [], acquire = exclusive, ...what }: What & { readonly acquire?: AcquireOurs },
  backend: Client<LockBackend>,
): Contender {
  const openLocks = async (url: string, ttlMs: number): Promise<OpenLocks> => {
    const { client, ping, close } = await backend.connect(url);
    const locks = createLocks(client, { ttlMs });
    return {
      locks,
      ping,
      async close() {
        await locks.close();
        await close();
      },
    };
  };
  return {
    ...what,
    kind: 'ours',
    floor: floor ?? what.name,
    packages: ['@locks/core', ...packages, ...backend.packages],
    openLocks,
    async open(url) {
      const { locks, ping, close } = await openLocks(url, TTL_MS);
      return {
        async acquire(name, weight = 1) {
          const lease = await acquire(locks, name, weight);
          return () => lease.release();
        },
        ping,
        close,
      };
    },
  };
}
