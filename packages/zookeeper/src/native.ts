import { setImmediate } from 'node:timers/promises';
import {
  type LockBackend,
  matching,
  mustBe,
  optional,
  type OptionTable,
  type SlotStore,
  readOptions,
  type ResultStore,
} from '@locks/core/backend';
import type { ZooKeeperCapabilities } from './capabilities.ts';
import { NativeClientPort } from './native-client.ts';
import type { NativeLibrary, NativeZooKeeperClient } from './native-client-types.ts';
import {
  type CheckedZookeeperOptions,
  COMMON_TABLE,
  type CommonOptions,
  DEFAULT_SESSION_MS,
  ELSEWHERE,
  readClientOrServers,
  SERVER_TABLE,
  type ServerOptions,
} from './options.ts';
import { recordOn, resultsOn } from './text-store.ts';
import type { ZookeeperClientSource } from './zookeeper-sessions.ts';
import { ZooKeeperLockBackend } from './zookeeper-backend.ts';

export type { ZooKeeperCapabilities } from './capabilities.ts';
export type { ZooKeeperError, ZooKeeperErrorCode } from './client-port.ts';
export type {
  NativeDataCallback,
  NativeLibrary,
  NativeListener,
  NativeStat,
  NativeZooKeeperClient,
} from './native-client-types.ts';
export type { CommonOptions, ServerOptions } from './options.ts';

/** A backend on the client library `zookeeper`. */
export type ZooKeeperBackend = LockBackend<ZooKeeperCapabilities>;

/** The options of `zookeeperBackend`. */
export type NativeBackendOptions = CommonOptions &
  ServerOptions<NativeZooKeeperClient> & {
    /**
     * The class that the package `zookeeper` exports; required with a connect string.
     * @defaultValue none, with a client of yours
     */
    readonly library?: NativeLibrary;
  };

// setup: import { createLocks } from '@locks/core'; import { zookeeperBackend } from '@locks/zookeeper/native';
// setup: import type { NativeLibrary } from '@locks/zookeeper/native'; declare const ZooKeeper: NativeLibrary;
/**
 * Locks in ZooKeeper, through the native package `zookeeper`, which you install yourself; its installation compiles it.
 * Everything else is as with `zookeeperBackend` of `@locks/zookeeper`.
 *
 * @param client - a client, which the backend never closes, or the connect string of the servers, `host:port,host:port,…`, followed by a path for a
 * chroot
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(zookeeperBackend('zk1:2181,zk2:2181,zk3:2181', { library: ZooKeeper }));
 * ```
 */
export function zookeeperBackend(
  client: NativeZooKeeperClient | string,
  options?: NativeBackendOptions,
): ZooKeeperBackend {
  const { source, ...checked } = readSource('zookeeperBackend()', client, options);
  return new ZooKeeperLockBackend('zookeeper-native', source, checked);
}

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { zookeeperBackend, zookeeperSlots } from '@locks/zookeeper/native';
// setup: import type { NativeLibrary } from '@locks/zookeeper/native'; declare const ZooKeeper: NativeLibrary;
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
 * const locks = createLocks(zookeeperBackend(servers, { library: ZooKeeper }));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: zookeeperSlots(servers, { library: ZooKeeper }) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function zookeeperSlots(
  client: NativeZooKeeperClient | string,
  options?: NativeBackendOptions,
): SlotStore {
  const what = 'zookeeperSlots()';
  const { source, ...checked } = readSource(what, client, options);
  return recordOn(source, checked, what);
}

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { zookeeperBackend, zookeeperResults } from '@locks/zookeeper/native';
// setup: import type { NativeLibrary } from '@locks/zookeeper/native'; declare const ZooKeeper: NativeLibrary;
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
 * const locks = createLocks(zookeeperBackend(servers, { library: ZooKeeper }));
 * const options = { store: zookeeperResults(servers, { library: ZooKeeper }), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function zookeeperResults(
  client: NativeZooKeeperClient | string,
  options?: NativeBackendOptions,
): ResultStore {
  const what = 'zookeeperResults()';
  const { source, ...checked } = readSource(what, client, options);
  return resultsOn(source, checked, what);
}

const TABLE = {
  library: optional(matching('the class that the package zookeeper exports', isLibrary)),
  ...SERVER_TABLE,
  setUpClient: (value, what) =>
    SERVER_TABLE.setUpClient(value, what) as ((client: NativeZooKeeperClient) => void) | undefined,
  ...COMMON_TABLE,
} satisfies OptionTable<NativeBackendOptions>;

/** @param what - the function that the user called, for the message of an error */
function readSource(
  what: string,
  given: unknown,
  options: NativeBackendOptions | undefined,
): CheckedZookeeperOptions & { readonly source: ZookeeperClientSource } {
  const { path, idleTtlMs, connectTimeoutMs, library, ...own } = readOptions(what, options, TABLE, ELSEWHERE);
  const source = readClientOrServers(what, given, 'a client of the package zookeeper', isClient, own);
  return { path, idleTtlMs, connectTimeoutMs, source: sourceOf(what, source, own, library) };
}

function sourceOf(
  what: string,
  source: { readonly client: NativeZooKeeperClient } | { readonly servers: string },
  { sessionTimeoutMs, setUpClient }: ServerOptions<NativeZooKeeperClient>,
  Library: NativeLibrary | undefined,
): ZookeeperClientSource {
  if ('client' in source) return { kind: 'given', port: new NativeClientPort(source.client, false) };
  if (Library === undefined)
    throw mustBe(`${what}: library`, 'the class that the package zookeeper exports', Library);
  const { servers } = source;
  return {
    kind: 'own',
    async open() {
      // A client that is opened inside a callback of an earlier one may get the number of the socket that the earlier client has just
      // closed and libuv still watches: that aborts the process.
      await setImmediate();
      const own = new Library({
        connect: servers,
        timeout: sessionTimeoutMs ?? DEFAULT_SESSION_MS,
        // The level 0 keeps the C client from writing to standard error.
        debug_level: 0,
        host_order_deterministic: false,
        // The limit is practically infinite: by default the package ends a session, alive or not, after some wake-ups without
        // data.
        response_counter_limit: 2 ** 30,
      });
      const port = new NativeClientPort(own, true);
      own.init({});
      setUpClient?.(own);
      return port;
    },
  };
}

function isClient(value: unknown): value is NativeZooKeeperClient {
  return typeof (value as Partial<NativeZooKeeperClient> | null)?.aw_get === 'function';
}

function isLibrary(value: unknown): value is NativeLibrary {
  return typeof value === 'function';
}
