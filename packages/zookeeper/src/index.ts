import type { LockBackend } from '@locks/core';
import library from 'node-zookeeper-client';
import type { ZooKeeperCapabilities } from './capabilities.ts';
import { hardenClient } from './harden-client.ts';
import { NodeClientPort } from './node-client.ts';
import type { NodeZooKeeperClient } from './node-client-types.ts';
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
export type { NodeClientError, NodeStat, NodeZooKeeperClient } from './node-client-types.ts';
export type { CommonOptions, ServerOptions } from './options.ts';

export type ZooKeeperBackend = LockBackend<ZooKeeperCapabilities>;

/** Where the servers are, or a client that you have. */
export type ZooKeeperBackendOptions = CommonOptions & {
  /**
   * The access control list of every node that is made, in the library's form.
   * @defaultValue open to everybody
   */
  readonly acl?: readonly unknown[];
} & (
    | (ServerOptions<NodeZooKeeperClient> & { readonly client?: never })
    | {
        /**
         * A client of `node-zookeeper-client` that is connected or connecting, made without its option `retries`. It is
         * never closed by the backend.
         */
        readonly client: NodeZooKeeperClient;
        readonly servers?: never;
      }
  );

/** After all servers were tried the library pauses for up to so long. */
const SPIN_MS = 100;

/**
 * Locks in ZooKeeper, through `node-zookeeper-client`. Nothing is opened before the first lock is asked for.
 *
 * With `servers` the backend opens clients of its own, a new one after each end of a session, and closes them. With
 * `client` it uses yours, and is over when its session is.
 *
 * The algorithm is the lock recipe of ZooKeeper's documentation, with the acquisition's id in the node's name.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(zookeeperBackend({ servers: 'zk1:2181,zk2:2181,zk3:2181' }));
 * ```
 */
export function zookeeperBackend(options: ZooKeeperBackendOptions): ZooKeeperBackend {
  if (typeof options !== 'object' || options === null)
    throw mustBe('zookeeperBackend()’s argument', 'an object with servers or client', options);
  return new ZooKeeperLockBackend('zookeeper', sourceOf(options), resolveOptions(options));
}

function sourceOf({ acl, ...options }: ZooKeeperBackendOptions): ClientSource {
  if (options.client !== undefined) {
    const { client } = options;
    if (typeof client.getSessionId !== 'function')
      throw mustBe('client', 'a client of node-zookeeper-client', client);
    // What it repeats by itself is told as failed meanwhile: a create would leave a node that nobody knows of.
    const { retries = 0 } = (client as { options?: { retries?: number } }).options ?? {};
    if (retries !== 0) throw mustBe('the client’s option retries', '0, which is its default', retries);
    return { kind: 'given', port: new NodeClientPort(client, false, false, acl) };
  }
  const servers = checkServers(options.servers);
  const sessionTimeout = checkSessionTimeout(options.sessionTimeoutMs);
  const { prepare } = options;
  return {
    kind: 'own',
    open() {
      const client = library.createClient(servers, { sessionTimeout, spinDelay: SPIN_MS, retries: 0 });
      hardenClient(client);
      prepare?.(client);
      const port = new NodeClientPort(client, true, servers.includes(','), acl);
      client.connect();
      return port;
    },
  };
}
