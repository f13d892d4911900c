import type { LockBackend } from '@locks/core';
import {
  matching,
  mustBe,
  optional,
  type OptionsRead,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';
import type { ZooKeeperCapabilities } from './capabilities.ts';
import { NativeClientPort } from './native-client.ts';
import type { NativeLibrary, NativeZooKeeperClient } from './native-client-types.ts';
import {
  checkSource,
  COMMON_TABLE,
  type CommonOptions,
  DEFAULT_SESSION_MS,
  SERVER_TABLE,
  type ServerOptions,
} from './options.ts';
import type { ZookeeperClientSource } from './zookeeper-sessions.ts';
import { ZooKeeperLockBackend } from './zookeeper-backend.ts';

export type { ZooKeeperCapabilities } from './capabilities.ts';
export { ZooKeeperError, type ZooKeeperErrorCode } from './client-port.ts';
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

/** The addresses of the servers, or a client of yours. */
export type NativeBackendOptions = CommonOptions &
  (
    | (ServerOptions<NativeZooKeeperClient> & {
        /** The class that the package `zookeeper` exports. */
        readonly library: NativeLibrary;
        readonly client?: never;
      })
    | {
        /** A client of the package `zookeeper`, after its `init`. The backend never closes it. */
        readonly client: NativeZooKeeperClient;
        readonly servers?: never;
      }
  );

// setup: import { createLocks } from '@locks/core'; import { zookeeperBackend } from '@locks/zookeeper/native';
// setup: import type { NativeLibrary } from '@locks/zookeeper/native'; declare const ZooKeeper: NativeLibrary;
/**
 * Locks in ZooKeeper, through the native package `zookeeper`, which you install yourself; its installation compiles it.
 * Everything else is as with `zookeeperBackend` of `@locks/zookeeper`.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(zookeeperBackend({ library: ZooKeeper, servers: 'zk1:2181,zk2:2181,zk3:2181' }));
 * ```
 */
export function zookeeperBackend(options: NativeBackendOptions): ZooKeeperBackend {
  const { path, tidyMs, connectTimeoutMs, ...source } = readOptions('zookeeperBackend()', options, TABLE);
  checkSource('zookeeperBackend()', source);
  return new ZooKeeperLockBackend('zookeeper-native', sourceOf(source), { path, tidyMs, connectTimeoutMs });
}

const TABLE = {
  library: optional(matching('the class that the package zookeeper exports', isLibrary)),
  ...SERVER_TABLE,
  prepare: (value, what) =>
    SERVER_TABLE.prepare(value, what) as ((client: NativeZooKeeperClient) => void) | undefined,
  client: optional(matching('a client of the package zookeeper', isClient)),
  ...COMMON_TABLE,
} satisfies OptionTable<NativeBackendOptions>;

type Source = Omit<OptionsRead<typeof TABLE>, keyof typeof COMMON_TABLE>;

function sourceOf({
  library: Library,
  client,
  servers = '',
  sessionTimeoutMs,
  prepare,
}: Source): ZookeeperClientSource {
  if (client !== undefined) return { kind: 'given', port: new NativeClientPort(client, false) };
  if (Library === undefined)
    throw mustBe('zookeeperBackend(): library', 'the class that the package zookeeper exports', Library);
  return {
    kind: 'own',
    open() {
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
      prepare?.(own);
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
