import { startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import type { Contention } from '../../compare/burst.ts';
import type { Comparison } from '../../compare/comparison.ts';
import { compareContended } from '../../compare/contended.ts';
import { compareUncontended, type LoopRow } from '../../compare/uncontended.ts';
import { measureTrips, type TripsResult } from '../../compare/trips.ts';
import { openTestbed, type TestbedServer } from '../../conduct/testbed.ts';
import type { Contender } from '../../contenders/contender.ts';
import { type KindsContender, type KindsRow, PERMITS, TOGETHER } from '../../contenders/kinds.ts';
import { describeMachine, versionsOf } from '../../measure/machine.ts';
import { Progress } from '../../measure/progress.ts';
import { redisMeter } from '../../measure/redis-meter.ts';
import { reportHead, type ReportHead } from '../../report/head.ts';
import type { Selection } from '../command.ts';
import type { StoreSettings } from '../workload.ts';

const READERS = 64;
const QUORUM = 3;

type Row<T> = T & { readonly id: KindsRow };

const loops: readonly Row<LoopRow>[] = [
  {
    id: 'readers',
    title: `${READERS} readers of one name, against ${READERS} exclusive locks of distinct names`,
    lanes: READERS,
  },
  { id: 'all', title: `All of ${TOGETHER} locks, again and again`, lanes: 1 },
  { id: 'quorum', title: `Quorum of ${QUORUM} servers, against one: one lock again and again`, lanes: 1 },
];

const semaphore = { turns: 2, capacity: PERMITS } as const;
const contentions: readonly Row<Contention>[] = [
  {
    id: 'semaphore',
    title: `Semaphore of ${PERMITS}: 64 waiters of one process, each twice`,
    processes: 1,
    waitersEach: 64,
    ...semaphore,
  },
  {
    id: 'weights',
    title: `Semaphore of ${PERMITS}: 4 processes × 16 waiters, each twice, with weights 1, 2, 1, 3`,
    processes: 4,
    waitersEach: 16,
    weights: [1, 2, 1, 3],
    ...semaphore,
  },
];

export const rowIds: readonly (KindsRow | 'trips')[] = [
  'readers',
  'semaphore',
  'weights',
  'all',
  'quorum',
  'trips',
];
/** Whose round trips are counted, through networks of how many milliseconds each way. */
const tripsOf: Partial<Record<KindsRow, readonly number[]>> = { all: [10], quorum: [10, 1] };

export interface KindsReport extends ReportHead {
  readonly suite: 'kinds';
  readonly settings: StoreSettings;
  readonly comparisons: readonly Comparison[];
  readonly trips?: readonly TripsResult[];
}

/** Measures the rows asked for, one after the other, on three servers. */
export async function measureKinds(
  settings: StoreSettings,
  { rows, contenders }: Selection,
  say: (text: string) => void,
): Promise<KindsReport> {
  const machine = describeMachine();
  const progress = new Progress(say);
  await using testbed = await openTestbed(startServers);
  say(testbed.placement);
  const comparisons: Comparison[] = [];
  const add = async (id: KindsRow, compare: (who: Contender[]) => Promise<Comparison>): Promise<void> => {
    const who = contenders.filter((contender) => (contender as KindsContender).rows.includes(id));
    if (!rows.has(id) || who.length === 0) return;
    const comparison = await progress.part(id, () => compare(who));
    if (comparison !== undefined) comparisons.push(comparison);
    // Each row has its own contenders: none of the others is there meanwhile.
    for (const contender of who) await testbed.endWorkers(contender);
  };
  for (const row of loops) await add(row.id, (who) => compareUncontended(testbed, who, settings, row));
  for (const row of contentions) await add(row.id, (who) => compareContended(testbed, who, settings, row));
  const trips: TripsResult[] = [];
  for (const contender of rows.has('trips') ? contenders : []) {
    const latencies = (contender as KindsContender).rows.flatMap((row) => tripsOf[row] ?? []);
    for (const latencyMs of new Set(latencies)) {
      const result = await progress.part(`trips ${contender.name}, ${latencyMs} ms`, () =>
        measureTrips(testbed, contender, { contended: false, forMs: settings.tripsMs, latencyMs }),
      );
      if (result !== undefined) trips.push(result);
    }
  }
  progress.report('done');
  const packages = contenders.flatMap((contender) => contender.packages);
  return {
    ...reportHead('kinds', machine, testbed.placement, testbed.server.versions, versionsOf(packages)),
    settings,
    failures: progress.failures,
    comparisons,
    ...(trips.length > 0 && { trips }),
  };
}

/** The quorum's three; everything else is on the first, and so are the counts. */
async function startServers(): Promise<TestbedServer> {
  const servers = await Promise.all(Array.from({ length: QUORUM }, () => startRedis()));
  const [first] = servers as [(typeof servers)[number]];
  const control = new Redis(first.url);
  const version = /^redis_version:(\S+)/m.exec(await control.info('server'))?.[1] ?? 'unknown';
  return {
    url: servers.map(({ url }) => url).join(' '),
    meter: redisMeter(control),
    network: {
      addresses: servers,
      urlAt: (addresses) => addresses.map(({ host, port }) => `redis://${host}:${port}`).join(' '),
    },
    versions: { 'redis-server': version },
    async stop() {
      control.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
