import { createLocks, type FencedLockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { type RedisCluster, startCluster } from '@locks/test-servers';
import { Cluster } from 'ioredis';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { describeMachine } from '../measure/machine.ts';
import { median } from '../measure/quantiles.ts';

const MASTERS = [3, 6, 12];
/** Spread over all masters. */
const NAMES = 48;
const HAND_OFFS = 960;
/** Between two checks of a process: by then each waiter has a channel. */
const CHECK_MS = 1_000;
/** A hand-off that took longer was found by a check, and not told by a message. */
const LONGEST_MS = 300;

/** How a cluster is made to tell of hand-offs: a user without the right to `SSUBSCRIBE` gets messages of `PUBLISH`. */
const ways = [
  { name: 'SPUBLISH', right: '+ssubscribe' },
  { name: 'PUBLISH', right: '-ssubscribe' },
] as const;

interface Row {
  readonly masters: number;
  readonly replicas: number;
  readonly way: string;
  readonly messagesEach: number;
  readonly medianMs: number;
}

/** `bench cluster`: messages between the nodes of a cluster for each hand-off, with more and more nodes. Gives the exit code. */
export async function clusterSuite(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { json: { type: 'string' } } });
  const machine = describeMachine();
  console.log(`${machine.cpu}, ${machine.cores} cores, Node ${process.version}, load ${machine.load}`);
  console.log('messages between nodes per hand-off, and the median time of one:');
  const rows: Row[] = [];
  for (const masters of MASTERS) {
    await using cluster = await startCluster({ masters, replicasPerMaster: 1, nodeTimeoutMs: 15_000 });
    for (const way of ways) {
      await Promise.all(cluster.nodes.map((node) => node.command('ACL', 'SETUSER', 'default', way.right)));
      const row = { masters, replicas: masters, way: way.name, ...(await measure(cluster)) };
      rows.push(row);
      console.log(
        `${masters} masters, ${masters} replicas, ${way.name.padEnd(8)}  ${row.messagesEach.toFixed(2)}  ${row.medianMs.toFixed(2)} ms`,
      );
    }
  }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ machine, rows }));
  return 0;
}

/** Hand-offs between two clients, each with a connection of its own for messages. */
async function measure(cluster: RedisCluster): Promise<Pick<Row, 'messagesEach' | 'medianMs'>> {
  const clients = [new Cluster(cluster.roots), new Cluster(cluster.roots)];
  const both = clients.map((client) => createLocks(redisBackend(client), { ttlMs: 60_000 })) as [
    FencedLockManager,
    FencedLockManager,
  ];
  try {
    const names = Array.from({ length: NAMES }, (_, index) => `bus ${index}`);
    // The first waiters at a master come before its channel is open.
    for (const name of names) await handOffs(both, name, 2);
    await sleep(CHECK_MS);
    const before = await messages(cluster);
    const times: number[] = [];
    for (const name of names) times.push(...(await handOffs(both, name, HAND_OFFS / NAMES)));
    const sent = (await messages(cluster)) - before;
    if (Math.max(...times) > LONGEST_MS) throw new Error('A hand-off was not told by a message.');
    return { messagesEach: sent / times.length, medianMs: median(times) };
  } finally {
    for (const locks of both) await locks.close();
    for (const client of clients) client.disconnect();
  }
}

/** The lock goes from one client to the other and back; how long each hand-off took. */
async function handOffs(
  both: readonly [FencedLockManager, FencedLockManager],
  name: string,
  count: number,
): Promise<number[]> {
  const times: number[] = [];
  let lease = await both[0].lock(name).acquire();
  for (let turn = 1; turn <= count; turn += 1) {
    const locks = both[turn % 2] as FencedLockManager;
    const entered = locks.lock(name).acquire({ waitMs: 20_000 });
    while ((await locks.inspect(name)).waiters.length === 0) await sleep(1);
    const from = performance.now();
    await lease.release();
    lease = await entered;
    times.push(performance.now() - from);
  }
  await lease.release();
  return times;
}

/** Messages of channels that the nodes have sent to each other so far. */
async function messages({ nodes }: RedisCluster): Promise<number> {
  const infos = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
  return infos
    .flatMap((info) => [...String(info).matchAll(/messages_publish(?:shard)?_sent:(\d+)/g)])
    .reduce((sum, [, sent]) => sum + Number(sent), 0);
}
