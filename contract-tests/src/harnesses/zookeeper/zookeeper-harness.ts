import { openSync } from 'node:fs';
import type { LockBackend } from '@locks/core/backend';
import type { Harness } from '@locks/core/conformance';
import { zookeeperBackend } from '@locks/zookeeper';
import { zookeeperBackend as nativeBackend } from '@locks/zookeeper/native';
import { serverIn } from '../connections/server-url.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith } from '../connections/shared-clients.ts';
import {
  childrenOf,
  connectClient,
  createSequentialNode,
  deleteNode,
  endSession,
  sessionOf,
  type Victim,
} from '../../administration/zookeeper.ts';
import type { Deployment, Topology } from './deployment.ts';
import { nativeLibrary } from './native-library.ts';

export type ZookeeperLibrary = 'node-zookeeper-client' | 'zookeeper';

/**
 * The session timeout: the time that the death of a holder costs. A busy machine may stand still for two thirds of it. A
 * connection may take a third: the native library forgets some (docs/backends/zookeeper.md), and then tries again.
 */
const SESSION_MS = 6_000;
/** A first call has twice this time: the native library may need a second try, a third of the session later. */
const SLACK_MS: Record<ZookeeperLibrary, number> = { 'node-zookeeper-client': 500, zookeeper: 1_100 };
/** The native client blocks the event loop while it closes: proxies in this process could not answer it meanwhile. */
const NATIVE_WIRE = {
  reason: 'the native client blocks the process in which the proxies run',
  link: 'docs/backends/zookeeper.md',
};
/** Sessions end in steps of the server's tick. */
const TICK_MS = 400;

/** One client library on one topology. */
export function zookeeperHarness(module: string, library: ZookeeperLibrary, topology: Topology): Harness {
  // A wrapper of a case passes on this very object.
  const victims = new WeakMap<object, Victim>();
  const isNative = library === 'zookeeper';
  const name = isNative ? 'zookeeper-native' : 'zookeeper';
  return servedHarness<string, Deployment>({
    module,
    name: topology === 'standalone' ? name : `${name}-${topology}`,
    topology,
    variable: 'LOCKS_CONFORMANCE_ZOOKEEPER',
    async start() {
      if (isNative) await nativeLibrary();
      return (await import('./deployment.ts')).deploy(topology);
    },
    prepare: async ({ direct }) => `ZooKeeper ${await versionOf(direct)}`,
    hasPrefix: true,
    async createBackend(address, served, path) {
      // The native client blocks while it closes: a proxy in its own process could not answer it.
      const servers = isNative ? (served?.direct ?? address) : address;
      const options = { sessionTimeoutMs: SESSION_MS, ...(path !== undefined && { path }) };
      let backend: LockBackend;
      const setUpClient = (client: Parameters<typeof sessionOf>[0]): void => {
        victims.set(backend.capabilities, sessionOf(client));
      };
      if (isNative) {
        backend = nativeBackend(servers, { ...options, library: await nativeLibrary(), setUpClient });
        return closedWith(backend, takeNumber);
      }
      backend = zookeeperBackend(servers, { ...options, setUpClient });
      return backend;
    },
    faults: (direct) => ({
      // The native client reaches the servers directly, for the reason above.
      ...(!isNative && {
        wire: {
          servers: () =>
            direct()
              .split(',')
              .map((server) => serverIn(`zookeeper://${server}`)),
          createBackend: (addresses) =>
            zookeeperBackend(addresses.map(({ host, port }) => `${host}:${port}`).join(','), {
              sessionTimeoutMs: SESSION_MS,
            }),
        },
      }),
      ...(!isNative && {
        async onOwnClient() {
          const client = await connectClient(direct(), SESSION_MS);
          return { backend: zookeeperBackend(client), closeClient: async () => client.close() };
        },
      }),
      corrupt: (resource) =>
        createSequentialNode(
          direct(),
          `/locks/:${encodeURIComponent(resource)}/x.of-another-program.`,
          'of another program',
        ),
      evict: (resource) => evict(direct(), resource),
      async endSession(backend: LockBackend) {
        const victim = victims.get(backend.capabilities);
        if (victim === undefined) throw new Error('This backend has no session yet.');
        await endSession(direct(), victim);
      },
    }),
    ...(isNative && {
      waivers: {
        'expiry/late-replies-cost-validity': NATIVE_WIRE,
        'faults/silent-wire-grants-nothing': NATIVE_WIRE,
        'close/settles-beside-a-silent-store': NATIVE_WIRE,
        'fencing/rises-past-a-slow-client': NATIVE_WIRE,
        // Only a client behind the proxies can be cut off.
        'faults/ping-reports-whether-the-store-answers': NATIVE_WIRE,
        'idempotence/cut-replies-count-once': NATIVE_WIRE,
        'idempotence/repeated-replies-count-once': NATIVE_WIRE,
      },
    }),
    timing: { slackMs: SLACK_MS[library], idleGapMs: SESSION_MS + TICK_MS },
  });
}

/** As the first server says it; a server of the user's may not answer this question. */
async function versionOf(servers: string): Promise<string> {
  const { fourLetterWord } = await import('@locks/test-servers');
  const [first = ''] = servers.split(',');
  const report = await fourLetterWord(serverIn(`zookeeper://${first}`), 'srvr').catch(() => '');
  return /version: ([\d.]+)/.exec(report)?.[1] ?? 'of unknown version';
}

/**
 * The native library watches the numbers of sockets that it has closed: another connection that gets such a number may hear
 * nothing for seconds (docs/backends/zookeeper.md). A process of the suite has hundreds of clients, so each number is used once.
 */
async function takeNumber(): Promise<void> {
  openSync('/dev/null', 'r');
}

/** The holder is first in the queue (docs/backends/zookeeper.md). */
export async function evict(servers: string, resource: string): Promise<void> {
  const parent = `/locks/:${encodeURIComponent(resource)}`;
  const [first] = [...(await childrenOf(servers, parent))].sort((a, b) => sequenceOf(a) - sequenceOf(b));
  if (first !== undefined) await deleteNode(servers, `${parent}/${first}`);
}

function sequenceOf(node: string): number {
  return Number(node.slice(node.lastIndexOf('.') + 1));
}
