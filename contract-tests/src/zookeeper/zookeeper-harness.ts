import type { LockBackend } from '@locks/core';
import { defineHarness, type Harness } from '@locks/core/conformance';
import { type NodeZooKeeperClient, zookeeperBackend } from '@locks/zookeeper';
import { childrenOf, deleteNode, endSessionOf } from './admin.ts';
import { deploy, type Deployment, type Topology } from './deployment.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_ZOOKEEPER';
/** What the death of a holder costs. */
const SESSION_MS = 2_000;
/** Sessions end in steps of the server's tick. */
const TICK_MS = 400;

/** One topology: this process speaks through proxies, child processes directly. */
export function zookeeperHarness(module: string, topology: Topology): Harness {
  let deployment: Deployment | undefined;
  const direct = (): string => process.env[VARIABLE] as string;
  // Whatever a case puts around a backend, it passes on this very object.
  const clients = new WeakMap<object, NodeZooKeeperClient>();
  return defineHarness({
    module,
    name: topology === 'standalone' ? 'zookeeper' : `zookeeper-${topology}`,
    server: 'ZooKeeper 3.8',
    topology,
    createBackend() {
      const backend = zookeeperBackend({
        servers: deployment?.proxied ?? direct(),
        sessionTimeoutMs: SESSION_MS,
        prepare: (client) => clients.set(backend.capabilities, client),
      });
      return backend;
    },
    async setup() {
      const started = await deploy(topology);
      deployment = started;
      return {
        env: { [VARIABLE]: started.direct },
        teardown: async () => {
          deployment = undefined;
          await started.stop();
        },
      };
    },
    faults: {
      async cut() {
        const proxies = deployment?.proxies ?? [];
        for (const proxy of proxies) {
          proxy.refuse();
          proxy.cut();
        }
        return async () => {
          await Promise.all(proxies.map((proxy) => proxy.heal()));
        };
      },
      async evict(resource) {
        await evict(direct(), resource);
      },
      async endSession(backend: LockBackend) {
        const client = clients.get(backend.capabilities);
        if (client === undefined) throw new Error('This backend has no session yet.');
        await endSessionOf(direct(), client);
      },
    },
    timing: { slackMs: 500, idleGapMs: SESSION_MS + TICK_MS },
  });
}

/** As docs/backends/zookeeper.md says: the holder is first in the line. */
export async function evict(servers: string, resource: string): Promise<void> {
  const parent = `/locks/${encodeURIComponent(resource).replace(/^\./, '%2E')}`;
  const [first] = [...(await childrenOf(servers, parent))].sort((a, b) => sequenceOf(a) - sequenceOf(b));
  if (first !== undefined) await deleteNode(servers, `${parent}/${first}`);
}

function sequenceOf(node: string): number {
  return Number(node.slice(node.lastIndexOf('.') + 1));
}
