import { readyAfter, startTogether } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import { RedisCluster } from './redis-cluster.ts';
import { launchRedis, type RedisServer } from './redis-server.ts';
import { parseInfo } from './send-command.ts';
import { baseArguments } from './start-redis.ts';

export interface ClusterOptions {
  /** @defaultValue 3 */
  readonly masters?: number;
  /** @defaultValue 1 */
  readonly replicasPerMaster?: number;
  /** How long a node must be silent before the others call it down. @defaultValue 2 000 */
  readonly nodeTimeoutMs?: number;
  /** More arguments of every node. */
  readonly args?: readonly string[];
}

const SLOTS = 16_384;

/** Starts a Redis Cluster; ready when every slot is served and every replica in sync. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { masters: masterCount = 3, replicasPerMaster = 1, nodeTimeoutMs = 2_000, args = [] } = options;
  const count = masterCount * (1 + replicasPerMaster);
  const nodes = await startTogether(Array.from({ length: count }, () => launchNode(nodeTimeoutMs, args)));
  const cluster = new RedisCluster(nodes, replicasPerMaster);
  return await readyAfter(cluster, async () => {
    const masters = nodes.slice(0, masterCount);
    await Promise.all(masters.map((master, index) => assignSlots(master, index, masterCount)));
    await introduce(nodes);
    await Promise.all(
      nodes.slice(masterCount).map(async (replica, index) => {
        const id = await masters[index % masterCount]?.command('CLUSTER', 'MYID');
        await replica.command('CLUSTER', 'REPLICATE', String(id));
      }),
    );
    await cluster.waitUntilReady();
  });
}

async function launchNode(nodeTimeoutMs: number, args: readonly string[]): Promise<RedisServer> {
  const timeout = ['--cluster-node-timeout', String(nodeTimeoutMs)];
  // A spare replica must not change its master in the middle of a test.
  const fixed = ['--cluster-allow-replica-migration', 'no'];
  return await launchRedis({
    label: 'cluster-node',
    withClusterBus: true,
    argv: async (location) => [
      ...(await baseArguments(location)),
      ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', ...timeout, ...fixed, ...args],
    ],
  });
}

async function assignSlots(master: RedisServer, index: number, of: number): Promise<void> {
  const from = Math.floor((index * SLOTS) / of);
  const to = Math.floor(((index + 1) * SLOTS) / of) - 1;
  await master.command('CLUSTER', 'ADDSLOTSRANGE', from, to);
  // With different epochs the masters need not resolve collisions first.
  await master.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
}

/** Every node meets every other at once: quicker than to wait for gossip. */
async function introduce(nodes: readonly RedisServer[]): Promise<void> {
  const pairs = nodes.flatMap((node) =>
    nodes.filter((other) => other !== node).map((other) => [node, other] as const),
  );
  await Promise.all(pairs.map(([node, other]) => node.command('CLUSTER', 'MEET', other.host, other.port)));
  const acquainted = async () => {
    const views = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'NODES')));
    const infos = await Promise.all(
      nodes.map(async (node) => parseInfo(await node.command('CLUSTER', 'INFO'))),
    );
    const complete = infos.every((info) => Number(info['cluster_known_nodes']) === nodes.length);
    return complete && !views.some((view) => String(view).includes('handshake'));
  };
  await waitUntil(acquainted, { what: 'the nodes of the cluster to know each other', timeoutMs: 20_000 });
}
