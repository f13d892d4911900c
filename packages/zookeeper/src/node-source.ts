import { matching, mustBe, optional, type OptionTable, readOptions } from '@locks/core/backend';
import library from 'node-zookeeper-client';
import { hardenClient } from './harden-client.ts';
import { NodeClientPort } from './node-client.ts';
import type { NodeZooKeeperClient } from './node-client-types.ts';
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
import type { ZookeeperClientSource } from './zookeeper-sessions.ts';

/** The options of `zookeeperBackend`. */
export type ZooKeeperBackendOptions = CommonOptions &
  ServerOptions<NodeZooKeeperClient> & {
    /**
     * The access control list of every node that the backend creates, in the library's form.
     * @defaultValue open to everybody
     */
    readonly acl?: readonly unknown[];
  };

/** The longest pause of the library after it has tried all servers. */
const SPIN_MS = 100;

const TABLE = {
  ...SERVER_TABLE,
  setUpClient: (value, what) =>
    SERVER_TABLE.setUpClient(value, what) as ((client: NodeZooKeeperClient) => void) | undefined,
  acl: optional(matching<readonly unknown[]>('an array', (value) => Array.isArray(value))),
  ...COMMON_TABLE,
} satisfies OptionTable<ZooKeeperBackendOptions>;

/** @param what - the function that the user called, for the message of an error */
export function readSource(
  what: string,
  given: unknown,
  options: ZooKeeperBackendOptions | undefined,
): CheckedZookeeperOptions & { readonly source: ZookeeperClientSource } {
  const { path, idleTtlMs, connectTimeoutMs, acl, ...own } = readOptions(what, options, TABLE, ELSEWHERE);
  const source = readClientOrServers(what, given, 'a client of node-zookeeper-client', isClient, own);
  return { path, idleTtlMs, connectTimeoutMs, source: sourceOf(what, source, own, acl) };
}

function sourceOf(
  what: string,
  source: { readonly client: NodeZooKeeperClient } | { readonly servers: string },
  { sessionTimeoutMs, setUpClient }: ServerOptions<NodeZooKeeperClient>,
  acl: readonly unknown[] | undefined,
): ZookeeperClientSource {
  if ('client' in source) {
    const { client } = source;
    // The library reports a request that it will repeat as failed: a repeated create would leave an unknown node.
    const { retries = 0 } = (client as { options?: { retries?: number } }).options ?? {};
    if (retries !== 0)
      throw mustBe(`${what}: the option retries of the client`, '0, which is its default', retries);
    return { kind: 'given', port: new NodeClientPort(client, false, false, acl) };
  }
  const { servers } = source;
  return {
    kind: 'own',
    open() {
      const sessionTimeout = sessionTimeoutMs ?? DEFAULT_SESSION_MS;
      const own = library.createClient(servers, { sessionTimeout, spinDelay: SPIN_MS, retries: 0 });
      hardenClient(own);
      setUpClient?.(own);
      const port = new NodeClientPort(own, true, servers.includes(','), acl);
      own.connect();
      return port;
    },
  };
}

function isClient(value: unknown): value is NodeZooKeeperClient {
  return typeof (value as Partial<NodeZooKeeperClient> | null)?.getSessionId === 'function';
}
