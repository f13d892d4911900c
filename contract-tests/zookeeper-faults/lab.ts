import { createLocks } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { startZookeeper, waitUntil, type ZooKeeperOptions, type ZooKeeperServer } from '@locks/test-servers';
import { type NodeZooKeeperClient, type ZooKeeperBackendOptions, zookeeperBackend } from '@locks/zookeeper';
import { zookeeperBackend as nativeBackend } from '@locks/zookeeper/native';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';
import { childrenOf } from '../src/administration/zookeeper.ts';
import { nativeLibrary } from '../src/harnesses/zookeeper/native-library.ts';

/** Short, so that the tests are; the servers of the tests have ticks of 200 ms. */
export const SESSION_MS = 2_000;

export type LabOptions = Partial<ZooKeeperBackendOptions & { sessionTimeoutMs: number }>;

type ZooKeeperLocks = ReturnType<typeof locksOf>;

export default class Lab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(options?: ZooKeeperOptions): Promise<ZooKeeperServer> {
    return this.use(await startZookeeper(options));
  }

  override locks(at: Address | { readonly address: string }, options: LabOptions = {}): ZooKeeperLocks {
    const servers = 'address' in at ? at.address : `${at.host}:${at.port}`;
    return this.with(servers, { sessionTimeoutMs: SESSION_MS, ...options });
  }

  /** Locks of a native client of its own. */
  async native(at: { readonly address: string }): Promise<ZooKeeperLocks> {
    const options = { library: await nativeLibrary(), sessionTimeoutMs: SESSION_MS };
    return this.use(createLocks(nativeBackend(at.address, options)));
  }

  with(client: NodeZooKeeperClient | string, options?: ZooKeeperBackendOptions): ZooKeeperLocks {
    return this.use(locksOf(client, options));
  }
}

function locksOf(client: NodeZooKeeperClient | string, options?: ZooKeeperBackendOptions) {
  return createLocks(zookeeperBackend(client, options));
}

/** The path of a resource's queue, where its name needs no encoding. */
export function parentOf(name: string): string {
  return `/locks/:${name}`;
}

/** Resolves when so many nodes are in the queue. */
export async function untilQueued(servers: string, name: string, count: number): Promise<readonly string[]> {
  return await waitUntil(
    async () => {
      const nodes = await childrenOf(servers, parentOf(name));
      return nodes.length === count ? nodes : undefined;
    },
    { what: `${count} nodes in the queue of ${name}` },
  );
}

export interface Traffic {
  /** Requests by the name of the library's method. */
  readonly requests: Map<string, number>;
  /** Events of watches that the server sent. */
  events: number;
}

/** Counts what a client of the library asks of the server, and what the server sends by itself. */
export function countTraffic(client: NodeZooKeeperClient, traffic: Traffic): void {
  const methods = client as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of ['create', 'remove', 'getChildren', 'getData']) {
    const original = methods[name]?.bind(client);
    methods[name] = (...args) => {
      // The probe belongs to the session, not to a lock.
      if (args[0] !== '/locks-backend-probe')
        traffic.requests.set(name, (traffic.requests.get(name) ?? 0) + 1);
      const counted = args.map((arg, index) =>
        typeof arg === 'function' && index === args.length - 2 ? countEvents(arg, traffic) : arg,
      );
      return original?.(...counted);
    };
  }
}

// biome-ignore lint/complexity/noBannedTypes: the watcher of the library, whatever it takes.
function countEvents(watcher: Function, traffic: Traffic): (...args: unknown[]) => unknown {
  return (...args) => {
    traffic.events += 1;
    return watcher(...args);
  };
}

export function requestsOf({ requests }: Traffic): number {
  return [...requests.values()].reduce((sum, count) => sum + count, 0);
}
