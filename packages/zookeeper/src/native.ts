import type { LockBackend } from '@locks/core';
import type { ZooKeeperCapabilities } from './capabilities.ts';
import { NativeClientPort } from './native-client.ts';
import type { NativeLibrary, NativeZooKeeperClient } from './native-client-types.ts';
import {
  checkServers,
  checkSessionTimeout,
  type CommonOptions,
  mustBe,
  resolveOptions,
  type ServerOptions,
} from './options.ts';
import type { ClientSource } from './sessions.ts';
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

export type ZooKeeperBackend = LockBackend<ZooKeeperCapabilities>;

/** Where the servers are, or a client that you have. */
export type NativeBackendOptions = CommonOptions &
  (
    | (ServerOptions<NativeZooKeeperClient> & {
        /** The class that the package `zookeeper` exports. */
        readonly library: NativeLibrary;
        readonly client?: never;
      })
    | {
        /** A client of the package `zookeeper`, after its `init`. It is never closed by the backend. */
        readonly client: NativeZooKeeperClient;
        readonly servers?: never;
      }
  );

/**
 * Locks in ZooKeeper, through the native package `zookeeper`, which you install yourself: it is compiled when it is
 * installed. Everything else is as with `zookeeperBackend` of `@locks/zookeeper`.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(zookeeperBackend({ library: ZooKeeper, servers: 'zk1:2181,zk2:2181,zk3:2181' }));
 * ```
 */
export function zookeeperBackend(options: NativeBackendOptions): ZooKeeperBackend {
  if (typeof options !== 'object' || options === null)
    throw mustBe('zookeeperBackend()’s argument', 'an object with library and servers, or client', options);
  return new ZooKeeperLockBackend('zookeeper-native', sourceOf(options), resolveOptions(options));
}

function sourceOf(options: NativeBackendOptions): ClientSource {
  if (options.client !== undefined) {
    const { client } = options;
    if (typeof client.aw_get !== 'function')
      throw mustBe('client', 'a client of the package zookeeper', client);
    return { kind: 'given', port: new NativeClientPort(client, false) };
  }
  const { library: Library, prepare } = options;
  if (typeof Library !== 'function')
    throw mustBe('library', 'the class that the package zookeeper exports', Library);
  const connect = checkServers(options.servers);
  const timeout = checkSessionTimeout(options.sessionTimeoutMs);
  return {
    kind: 'own',
    open() {
      const client = new Library({
        connect,
        timeout,
        // The C client prints to the process's standard error otherwise.
        debug_level: 0,
        host_order_deterministic: false,
        // The package ends a session after some wake-ups that brought nothing, alive or not.
        response_counter_limit: 2 ** 30,
      });
      const port = new NativeClientPort(client, true);
      client.init({});
      prepare?.(client);
      return port;
    },
  };
}
