import type { LockBackend, SlotStore, ResultStore } from '@locks/core/backend';
import type { ZooKeeperCapabilities } from './capabilities.ts';
import type { NodeZooKeeperClient } from './node-client-types.ts';
import { readSource, type ZooKeeperBackendOptions } from './node-source.ts';
import { recordOn, resultsOn } from './text-store.ts';
import { ZooKeeperLockBackend } from './zookeeper-backend.ts';

export type { ZooKeeperCapabilities } from './capabilities.ts';
export type { ZooKeeperError, ZooKeeperErrorCode } from './client-port.ts';
export type { NodeClientError, NodeStat, NodeTransaction, NodeZooKeeperClient } from './node-client-types.ts';
export type { ZooKeeperBackendOptions } from './node-source.ts';
export type { CommonOptions, ServerOptions } from './options.ts';

/** A backend on the client library `node-zookeeper-client`. */
export type ZooKeeperBackend = LockBackend<ZooKeeperCapabilities>;

// setup: import { createLocks } from '@locks/core'; import { zookeeperBackend } from '@locks/zookeeper';
/**
 * Locks in ZooKeeper, through `node-zookeeper-client`. The backend connects when the first lock is requested.
 *
 * With a connect string the backend opens clients of its own, a new one after each end of a session, and closes them. With a
 * client it uses yours, and ends with that client's session.
 *
 * The algorithm is the lock recipe of ZooKeeper's documentation, with the acquisition's id in the node's name.
 *
 * @param client - a client, which the backend never closes, or the connect string of the servers, `host:port,host:port,…`, followed by a path for a
 * chroot
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(zookeeperBackend('zk1:2181,zk2:2181,zk3:2181'));
 * ```
 */
export function zookeeperBackend(
  client: NodeZooKeeperClient | string,
  options?: ZooKeeperBackendOptions,
): ZooKeeperBackend {
  const { source, ...checked } = readSource('zookeeperBackend()', client, options);
  return new ZooKeeperLockBackend('zookeeper', source, checked);
}

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { zookeeperBackend, zookeeperSlots } from '@locks/zookeeper';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The record in which `once` of `@locks/once` keeps the slots that were done: a node for each job, `<path>/::once/:<job>`. With a connect string a
 * session is opened for a call, and closed a second after the last one.
 *
 * @param client - as that of {@link zookeeperBackend}
 * @param options - those of {@link zookeeperBackend}
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw a `ZooKeeperError`, a `NoAnswerError` after 10 s, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const servers = 'zk1:2181,zk2:2181,zk3:2181';
 * const locks = createLocks(zookeeperBackend(servers));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: zookeeperSlots(servers) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function zookeeperSlots(
  client: NodeZooKeeperClient | string,
  options?: ZooKeeperBackendOptions,
): SlotStore {
  const what = 'zookeeperSlots()';
  const { source, ...checked } = readSource(what, client, options);
  return recordOn(source, checked, what);
}

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { zookeeperBackend, zookeeperResults } from '@locks/zookeeper';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results, each of which ends by the clock of the ensemble's leader. A node for each key
 * stays. Each `get` costs a write, which makes its read see all results. With a connect string a session is opened for a call, and closed a second
 * after the last one.
 *
 * @param client - as that of {@link zookeeperBackend}
 * @param options - those of {@link zookeeperBackend}
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw a `ZooKeeperError`, a `NoAnswerError` after 10 s, and `set`
 * `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const servers = 'zk1:2181,zk2:2181,zk3:2181';
 * const locks = createLocks(zookeeperBackend(servers));
 * const options = { store: zookeeperResults(servers), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function zookeeperResults(
  client: NodeZooKeeperClient | string,
  options?: ZooKeeperBackendOptions,
): ResultStore {
  const what = 'zookeeperResults()';
  const { source, ...checked } = readSource(what, client, options);
  return resultsOn(source, checked, what);
}
