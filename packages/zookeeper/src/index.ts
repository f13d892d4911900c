import type { LockBackend } from '@locks/core';
import {
  matching,
  mustBe,
  optional,
  type OptionsRead,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';
import library from 'node-zookeeper-client';
import type { ZooKeeperCapabilities } from './capabilities.ts';
import { hardenClient } from './harden-client.ts';
import { NodeClientPort } from './node-client.ts';
import type { NodeZooKeeperClient } from './node-client-types.ts';
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
export type { NodeClientError, NodeStat, NodeZooKeeperClient } from './node-client-types.ts';
export type { CommonOptions, ServerOptions } from './options.ts';

/** A backend on the client library `node-zookeeper-client`. */
export type ZooKeeperBackend = LockBackend<ZooKeeperCapabilities>;

/** The options of `zookeeperBackend`: the addresses of the servers, or a client of yours. */
export type ZooKeeperBackendOptions = CommonOptions & {
  /**
   * The access control list of every node that the backend creates, in the library's form.
   * @defaultValue open to everybody
   */
  readonly acl?: readonly unknown[];
} & (
    | (ServerOptions<NodeZooKeeperClient> & { readonly client?: never })
    | {
        /**
         * A client of `node-zookeeper-client` that is connected or connecting, made without its option `retries`. The
         * backend never closes it.
         */
        readonly client: NodeZooKeeperClient;
        readonly servers?: never;
      }
  );

/** The longest pause of the library after it has tried all servers. */
const SPIN_MS = 100;

// setup: import { createLocks } from '@locks/core'; import { zookeeperBackend } from '@locks/zookeeper';
/**
 * Locks in ZooKeeper, through `node-zookeeper-client`. The backend connects when the first lock is requested.
 *
 * With `servers` the backend opens clients of its own, a new one after each end of a session, and closes them. With
 * `client` it uses yours, and ends with that client's session.
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
  const { path, tidyMs, connectTimeoutMs, ...source } = readOptions('zookeeperBackend()', options, TABLE);
  checkSource('zookeeperBackend()', source);
  return new ZooKeeperLockBackend('zookeeper', sourceOf(source), { path, tidyMs, connectTimeoutMs });
}

const TABLE = {
  ...SERVER_TABLE,
  prepare: (value, what) =>
    SERVER_TABLE.prepare(value, what) as ((client: NodeZooKeeperClient) => void) | undefined,
  client: optional(matching('a client of node-zookeeper-client', isClient)),
  acl: optional(matching<readonly unknown[]>('an array', (value) => Array.isArray(value))),
  ...COMMON_TABLE,
} satisfies OptionTable<ZooKeeperBackendOptions>;

type Source = Omit<OptionsRead<typeof TABLE>, keyof typeof COMMON_TABLE>;

function sourceOf({ client, acl, servers = '', sessionTimeoutMs, prepare }: Source): ZookeeperClientSource {
  if (client !== undefined) {
    // The library reports a request that it will repeat as failed: a repeated create would leave an unknown node.
    const { retries = 0 } = (client as { options?: { retries?: number } }).options ?? {};
    if (retries !== 0)
      throw mustBe(
        'zookeeperBackend(): the option retries of the client',
        '0, which is its default',
        retries,
      );
    return { kind: 'given', port: new NodeClientPort(client, false, false, acl) };
  }
  return {
    kind: 'own',
    open() {
      const sessionTimeout = sessionTimeoutMs ?? DEFAULT_SESSION_MS;
      const own = library.createClient(servers, { sessionTimeout, spinDelay: SPIN_MS, retries: 0 });
      hardenClient(own);
      prepare?.(own);
      const port = new NodeClientPort(own, true, servers.includes(','), acl);
      own.connect();
      return port;
    },
  };
}

function isClient(value: unknown): value is NodeZooKeeperClient {
  return typeof (value as Partial<NodeZooKeeperClient> | null)?.getSessionId === 'function';
}
