import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openTestbed, type Testbed } from '../conduct/testbed.ts';
import type { Worker } from '../conduct/worker.ts';
import { contendersOf } from '../contenders/all.ts';
import type { Contender } from '../contenders/contender.ts';
import { describeMachine } from '../measure/machine.ts';
import { allStores } from '../stores/all.ts';
import { localStore } from '../stores/local.ts';
import { absenceOf, recordStores } from '../stores/records.ts';
import type { Store } from '../stores/store.ts';
import type { CrowdCounts } from '../worker/methods.ts';

/** How many lock managers enter again and again beside the crowd. */
const BUSY = 4;
const CROWDS = [2, 10, 40, 100];
const IDLE = 100;
/** The managers of a crowd share so many processes, to fit a small machine: each has a client, a connection and a place of its own. */
const PROCESSES = 4;
const TTL_MS = 30_000;
const SETTLE_MS = 3_000;
/** Until who waits in vain for long asks no more often any more. */
const IDLE_SETTLE_MS = 20_000;
/** For so many half seconds the crowd has time to come in. */
const SETTLES = 40;
const ROWS = ['hand-offs', 'rush', 'idle'] as const;

interface CrowdRow {
  readonly store: string;
  readonly row: (typeof ROWS)[number];
  readonly others: number;
  readonly perSecond?: number;
  readonly requestsEach?: number;
  readonly conflictsEach?: number;
  readonly requestsPerSecond?: number;
  readonly seconds?: number;
  readonly failedReleases?: number;
  readonly failedAcquires?: number;
  readonly byCommand?: Readonly<Record<string, number>>;
}

const USAGE = `usage: bench crowds [--store S]... [--only ${ROWS.join('|')}] [--others N]... [--seconds S] [--json FILE]
  What a lock costs that many other processes wait for, as the clients count it.`;

/** `bench crowds`: hand-offs and requests while many others wait, a rush of newcomers, and a crowd that waits in vain. Gives the exit code. */
export async function crowdsSuite(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      store: { type: 'string', multiple: true },
      only: { type: 'string', multiple: true },
      others: { type: 'string', multiple: true },
      seconds: { type: 'string', default: '8' },
      json: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const machine = describeMachine();
  console.log(`${machine.cpu}, ${machine.cores} cores, Node ${process.version}, load ${machine.load}`);
  const crowds = values.others?.map(Number) ?? CROWDS;
  const rows: CrowdRow[] = [];
  const show = (row: CrowdRow): void => {
    rows.push(row);
    console.log(inWords(row));
  };
  for (const store of [...recordStores, ...allStores]) {
    if (store === localStore) continue;
    if (values.store?.includes(store.id) === false) continue;
    const absence = absenceOf(store);
    if (absence !== undefined) console.log(absence);
    if (absence !== undefined) continue;
    const ours = (await contendersOf(store.id)).find(({ kind }) => kind === 'ours') as Contender;
    const isAsked = (row: string): boolean => values.only?.includes(row) ?? true;
    const seconds = Number(values.seconds);
    if (isAsked('hand-offs'))
      for (const others of crowds) show(await measured(store, ours, others, seconds, handOffs));
    if (isAsked('rush'))
      for (const others of crowds) show(await measured(store, ours, others, seconds, rush));
    if (isAsked('idle')) show(await measured(store, ours, IDLE, seconds, idle));
  }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ machine, rows }));
  return 0;
}

interface Scene {
  readonly testbed: Testbed;
  readonly busy: Worker;
  readonly crowd: readonly Worker[];
  readonly others: number;
  readonly seconds: number;
  counts(): Promise<CrowdCounts>;
}

/** Each row has a server of its own: what an earlier one has left behind does not count. */
async function measured(
  { id: store, start }: Store,
  ours: Contender,
  others: number,
  seconds: number,
  work: (scene: Scene) => Promise<Omit<CrowdRow, 'store' | 'others'>>,
): Promise<CrowdRow> {
  await using testbed = await openTestbed(start);
  const task = {
    ...{ store: ours.store, contender: ours.name },
    url: testbed.url,
    ttlMs: TTL_MS,
    name: 'crowd',
  };
  const busy = testbed.startWorker();
  const sizes = Array.from({ length: Math.min(PROCESSES, others) }, (_, index) =>
    Math.floor((others + index) / Math.min(PROCESSES, others)),
  );
  const crowd = sizes.map(() => testbed.startWorker());
  await busy.call.openCrowd({ ...task, clients: work === handOffs ? BUSY : 1 });
  await Promise.all(
    crowd.map((worker, index) => worker.call.openCrowd({ ...task, clients: sizes[index] ?? 0 })),
  );
  const counts = async (): Promise<CrowdCounts> => {
    const all = await Promise.all([busy, ...crowd].map((worker) => worker.call.crowdCounts()));
    const sum = (of: (one: CrowdCounts) => number): number => all.reduce((total, one) => total + of(one), 0);
    return {
      entered: sum(({ entered }) => entered),
      failedReleases: sum(({ failedReleases }) => failedReleases),
      failedAcquires: sum(({ failedAcquires }) => failedAcquires),
    };
  };
  const result = await work({ testbed, busy, crowd, others, seconds, counts });
  return { store, others, ...result };
}

/** Four and the others enter again and again: so many wait all the time. */
async function handOffs({
  testbed,
  busy,
  crowd,
  others,
  seconds,
  counts,
}: Scene): Promise<Omit<CrowdRow, 'store' | 'others'>> {
  await Promise.all([busy, ...crowd].map((worker) => worker.call.beginCrowd(Number.POSITIVE_INFINITY)));
  await delay(SETTLE_MS);
  // From here on everybody has come in, and the arrivals are those of who comes again.
  for (let passed = 0; passed < SETTLES && (await counts()).entered < 2 * others; passed += 1)
    await delay(500);
  const before = await counts();
  const startedAt = performance.now();
  const [{ total, conflicts = 0, sent }] = await testbed.meter.count(() => delay(seconds * 1_000));
  const passed = (performance.now() - startedAt) / 1_000;
  const after = await counts();
  const entered = after.entered - before.entered;
  return {
    row: 'hand-offs',
    perSecond: entered / passed,
    requestsEach: total / entered,
    conflictsEach: conflicts / entered,
    failedReleases: after.failedReleases,
    failedAcquires: after.failedAcquires,
    byCommand: Object.fromEntries(sent),
  };
}

/** One holds for a moment and enters again and again, and all others come at once; each enters once. */
async function rush({
  testbed,
  busy,
  crowd,
  others,
  counts,
}: Scene): Promise<Omit<CrowdRow, 'store' | 'others'>> {
  await busy.call.beginCrowd(Number.POSITIVE_INFINITY);
  const startedAt = performance.now();
  const untilAll = async (): Promise<void> => {
    await Promise.all(crowd.map((worker) => worker.call.beginCrowd(1)));
    for (;;) {
      const all = await Promise.all(crowd.map((worker) => worker.call.crowdCounts()));
      const done = all.reduce((sum, { entered }) => sum + entered, 0);
      if (done >= others || performance.now() - startedAt > 60_000) return;
      await delay(20);
    }
  };
  const [{ total, conflicts = 0 }] = await testbed.meter.count(untilAll);
  const { entered, failedReleases, failedAcquires } = await counts();
  return {
    row: 'rush',
    seconds: (performance.now() - startedAt) / 1_000,
    requestsEach: total / entered,
    conflictsEach: conflicts / entered,
    failedReleases,
    failedAcquires,
  };
}

/** One holds, and all others wait. */
async function idle({ testbed, busy, crowd, seconds }: Scene): Promise<Omit<CrowdRow, 'store' | 'others'>> {
  await busy.call.holdCrowd();
  await Promise.all(crowd.map((worker) => worker.call.beginCrowd(1)));
  await delay(IDLE_SETTLE_MS);
  const [{ total, sent }] = await testbed.meter.count(() => delay(seconds * 1_000));
  return { row: 'idle', requestsPerSecond: total / seconds, byCommand: Object.fromEntries(sent) };
}

function inWords({ store, row, others, byCommand, ...figures }: CrowdRow): string {
  const texts = Object.entries(figures).map(([name, value]) => `${name} ${Number(value.toFixed(2))}`);
  const commands = Object.entries(byCommand ?? {}).map(([name, count]) => `${name} ${count}`);
  return [
    `${store} ${row} +${others}:`,
    texts.join(', '),
    ...(commands.length > 0 ? [`(${commands.join(', ')})`] : []),
  ].join(' ');
}
