import { openSync } from 'node:fs';
import type { LockBackend } from '@locks/core';
import { defineHarness, type Harness } from '@locks/core/conformance';
import { zookeeperBackend } from '@locks/zookeeper';
import { zookeeperBackend as nativeBackend } from '@locks/zookeeper/native';
import { closedWith } from '../shared-clients.ts';
import { childrenOf, deleteNode, endSession, sessionOf, type Victim } from './admin.ts';
import type { Deployment, Topology } from './deployment.ts';
import { nativeLibrary } from './native-library.ts';

export type Client = 'node-zookeeper-client' | 'zookeeper';

const VARIABLE = 'LOCKS_CONFORMANCE_ZOOKEEPER';
/**
 * What the death of a holder costs; two thirds of it are what a busy machine may stand still. A third is what a connection
 * may take: the native library forgets some (docs/backends/zookeeper.md), and then tries again.
 */
const SESSION_MS = 6_000;
/** Twice that is what a first call has time for: the native library may need a second try, a third of the session later. */
const SLACK_MS: Record<Client, number> = { 'node-zookeeper-client': 500, zookeeper: 1_100 };
/** Sessions end in steps of the server's tick. */
const TICK_MS = 400;

/** One client library on one topology: this process speaks through proxies, child processes directly. */
export function zookeeperHarness(module: string, library: Client, topology: Topology): Harness {
  let deployment: Deployment | undefined;
  const direct = (): string => process.env[VARIABLE] as string;
  // Whatever a case puts around a backend, it passes on this very object.
  const victims = new WeakMap<object, Victim>();
  const name = library === 'zookeeper' ? 'zookeeper-native' : 'zookeeper';
  return defineHarness({
    module,
    name: topology === 'standalone' ? name : `${name}-${topology}`,
    server: 'ZooKeeper 3.8',
    topology,
    async createBackend() {
      // The native client blocks while it closes: a proxy in its own process could not answer it.
      const servers = library === 'zookeeper' ? direct() : (deployment?.proxied ?? direct());
      const options = { servers, sessionTimeoutMs: SESSION_MS };
      let backend: LockBackend;
      const prepare = (client: Parameters<typeof sessionOf>[0]): void => {
        victims.set(backend.capabilities, sessionOf(client));
      };
      if (library === 'zookeeper') {
        backend = nativeBackend({ ...options, library: await nativeLibrary(), prepare });
        return closedWith(backend, takeNumber);
      }
      backend = zookeeperBackend({ ...options, prepare });
      return backend;
    },
    async setup() {
      if (library === 'zookeeper') await nativeLibrary();
      // Only here: child processes load no more than they need.
      const { deploy } = await import('./deployment.ts');
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
        const victim = victims.get(backend.capabilities);
        if (victim === undefined) throw new Error('This backend has no session yet.');
        await endSession(direct(), victim);
      },
    },
    timing: { slackMs: SLACK_MS[library], idleGapMs: SESSION_MS + TICK_MS },
  });
}

/**
 * The native library watches the numbers of sockets that it has closed: another connection that gets such a number may hear
 * nothing for seconds (docs/backends/zookeeper.md). Hundreds of clients in one process: so a number is used once.
 */
async function takeNumber(): Promise<void> {
  openSync('/dev/null', 'r');
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
