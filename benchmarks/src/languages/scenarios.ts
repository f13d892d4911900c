import type { Redis } from 'ioredis';
import { machineNow, sleepUntil } from '../measure/clock.ts';
import { readHistory } from '../measure/history.ts';
import { quantile } from '../measure/quantiles.ts';
import { Client, type Language, type Library, type Looped, type Task } from './drivers.ts';

/** A workload on which libraries are compared. */
export interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly kind: Task['kind'];
  readonly processes: number;
  readonly lanes: number;
  readonly own: boolean;
  readonly sectionMs: number;
  readonly capacity: number;
}

const plain = { kind: 'lock', processes: 1, lanes: 1, own: false, sectionMs: 0, capacity: 1 } as const;

export const scenarios: readonly Scenario[] = [
  { ...plain, id: 'sequential', title: 'One lock again and again' },
  { ...plain, id: 'keys', title: '64 locks at once', lanes: 64, own: true },
  { ...plain, id: 'waiters', title: '32 waiters of one process, empty section', lanes: 32 },
  {
    ...plain,
    id: 'processes',
    title: '4 processes × 8 waiters, empty section',
    processes: 4,
    lanes: 8,
  },
  {
    ...plain,
    id: 'sections',
    title: '4 processes × 8 waiters, section of 2 ms',
    processes: 4,
    lanes: 8,
    sectionMs: 2,
  },
  { ...plain, id: 'readers', title: '32 readers and one writer', kind: 'readers', lanes: 33 },
  {
    ...plain,
    id: 'semaphore',
    title: '64 waiters for 8 permits, empty section',
    kind: 'semaphore',
    lanes: 64,
    capacity: 8,
  },
];

/** What one library did in one round of a scenario. */
export interface Figures {
  readonly perSecond: number;
  readonly waitP50Ms: number;
  readonly waitP99Ms: number;
  readonly longestWaitMs: number;
  /** Most entries of a waiter / least; `Infinity` where one had none. */
  readonly fair: number;
  readonly starved: number;
  readonly overlaps: number;
  /** Processor time of the server for an entry. */
  readonly serverMicros: number;
  /** Of `readers`: entries of the writer. */
  readonly writesPerSecond?: number;
}

/** Where clients run, and on which server. */
export interface Place {
  readonly control: Redis;
  readonly address: string;
  readonly cores: string | undefined;
}

/** A library, and the command of a client process that uses it. */
export interface Player {
  readonly language: Language;
  readonly library: Library;
  command(task: Task): readonly string[];
}

const TTL_MS = 30_000;
const HELD_WITHIN_MS = 120_000;
/** Time for the announcement of a start to reach all processes. */
const NOTICE_MS = 20;
/** For how long a process may start, or report what it did. */
const LATE_MS = 60_000;
/** How long waiters wait before what they do is looked at. */
const SETTLE_MS = 500;

let names = 0;

function taskOf(place: Place, { library }: Player, more: Partial<Task>): Task {
  names += 1;
  return {
    library: library.name,
    address: place.address,
    op: 'loop',
    kind: 'lock',
    capacity: 1,
    name: `bench-languages-${names}`,
    own: false,
    lanes: 1,
    sectionMs: 0,
    ttlMs: TTL_MS,
    ...more,
  };
}

/** Lets processes begin at the same time, when all of them are ready. @returns when they end */
async function begin(clients: readonly Client[], forMs: number): Promise<number> {
  await Promise.all(clients.map((client) => client.line(LATE_MS)));
  const startAt = machineNow() + NOTICE_MS;
  for (const client of clients) client.begin(startAt, startAt + forMs);
  return startAt + forMs;
}

/** For how long the processes of a round contend, and for how long before that: compilers need it, and nothing of it is counted. */
export interface RoundTimes {
  readonly leadInMs: number;
  readonly forMs: number;
}

/** One round of all processes of the library. */
export async function playRound(
  place: Place,
  player: Player,
  scenario: Scenario,
  { leadInMs, forMs }: RoundTimes,
): Promise<Figures> {
  const { processes, lanes, kind, own, sectionMs, capacity } = scenario;
  const task = taskOf(place, player, { kind, own, lanes, sectionMs, capacity });
  const clients = Array.from({ length: processes }, () => new Client(player.command(task), place.cores));
  try {
    const stopAt = await begin(clients, leadInMs + forMs);
    await sleepUntil(stopAt - forMs);
    const cpuBefore = await cpuMicros(place.control);
    const lines = await Promise.all(clients.map((client) => client.line(forMs + LATE_MS)));
    const spent = (await cpuMicros(place.control)) - cpuBefore;
    const reports = lines.map((line) => JSON.parse(line) as Looped);
    return figuresOf(scenario, reports, { from: stopAt - forMs, stopAt }, spent);
  } finally {
    await Promise.all(clients.map((client) => client.kill()));
  }
}

function figuresOf(
  scenario: Scenario,
  reports: readonly Looped[],
  { from, stopAt }: { readonly from: number; readonly stopAt: number },
  spent: number,
): Figures {
  const { lanes, kind, own, capacity } = scenario;
  const all = reports.flatMap(({ entries: own_ }, process) =>
    own_.map(([lane, askedAt, enteredAt, leftAt]) => ({
      who: process * lanes + lane,
      askedAt,
      enteredAt,
      leftAt,
    })),
  );
  const entries = all.filter(({ enteredAt }) => enteredAt >= from);
  const unserved = reports.flatMap(({ unserved: left }) => left.map(([, askedAt]) => stopAt - askedAt));
  const counts = new Array<number>(reports.length * lanes).fill(0);
  for (const { who } of entries) counts[who] = (counts[who] ?? 0) + 1;
  const writer = kind === 'readers' ? entries.filter(({ who }) => who % lanes === 0) : [];
  const compared = kind === 'readers' ? counts.filter((_, who) => who % lanes !== 0) : counts;
  const seconds = (stopAt - from) / 1_000;
  const waits = [...entries.map(({ askedAt, enteredAt }) => enteredAt - askedAt), ...unserved];
  return {
    perSecond: entries.length / seconds,
    waitP50Ms: quantile(waits, 0.5),
    waitP99Ms: quantile(waits, 0.99),
    longestWaitMs: waits.reduce((longest, wait) => Math.max(longest, wait), 0),
    fair: Math.max(...compared) / Math.min(...compared),
    starved: counts.filter((count) => count === 0).length,
    overlaps: own ? 0 : overlapsOf(all, kind, lanes, capacity),
    serverMicros: spent / entries.length,
    ...(kind === 'readers' && { writesPerSecond: writer.length / seconds }),
  };
}

interface Entry {
  readonly who: number;
  readonly askedAt: number;
  readonly enteredAt: number;
  readonly leftAt: number;
}

/** Entries beside others that exclude them. A reader weighs 1 of all readers, a writer all. */
function overlapsOf(entries: readonly Entry[], kind: Task['kind'], lanes: number, capacity: number): number {
  const limit = kind === 'readers' ? lanes : capacity;
  const weightOf = (who: number): number => (kind === 'readers' && who % lanes === 0 ? lanes : 1);
  const holds = entries.map(({ who, ...times }) => ({ ...times, late: false, weight: weightOf(who) }));
  return readHistory(holds, limit).overlaps;
}

/** From the end of a killed holder's lock at the server to the next entry, in milliseconds. */
export async function playKill(place: Place, player: Player, ttlMs: number): Promise<number> {
  const held = taskOf(place, player, { op: 'hold', ttlMs });
  const holder = new Client(player.command(held), place.cores);
  const waiting: Task = { ...held, op: 'loop' };
  const clients = [1, 2, 3].map(() => new Client(player.command(waiting), place.cores));
  try {
    await holder.line(HELD_WITHIN_MS);
    await begin(clients, 2 * ttlMs + SETTLE_MS);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    await holder.kill();
    const leftMs = await longestPttl(place.control, held.name);
    const endsAt = machineNow() + leftMs;
    const reports = await Promise.all(
      clients.map(async (client) => JSON.parse(await client.line(LATE_MS)) as Looped),
    );
    const entered = reports.flatMap(({ entries }) => entries.map(([, , enteredAt]) => enteredAt));
    if (entered.length === 0) throw new Error('nobody entered after the killed holder');
    return entered.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY) - endsAt;
  } finally {
    await Promise.all([holder, ...clients].map((client) => client.kill()));
  }
}

/** Libraries have keys of their own, all of which contain the name; waiters' keys have no end, or a later one than the lock's. */
async function longestPttl(control: Redis, name: string): Promise<number> {
  const keys = (await control.keys(`*${name}*`)).filter((key) => !/queue|timeout|warm-up|:q$/.test(key));
  const left = await Promise.all(keys.map((key) => control.pttl(key)));
  return Math.max(...left);
}

/** Commands a second, those inside scripts included, while so many waiters of one process wait for a held lock. */
export async function playIdle(
  place: Place,
  player: Player,
  waiters: number,
  forMs: number,
): Promise<number> {
  const held = taskOf(place, player, { op: 'hold' });
  const holder = new Client(player.command(held), place.cores);
  const client = new Client(player.command({ ...held, op: 'loop', lanes: waiters }), place.cores);
  try {
    await holder.line(HELD_WITHIN_MS);
    await begin([client], 3 * forMs);
    // All of them have asked by then.
    await new Promise((resolve) => setTimeout(resolve, forMs));
    return await commandsPerSecond(place.control, forMs);
  } finally {
    await Promise.all([holder.kill(), client.kill()]);
  }
}

/** Commands a second, those inside scripts included, for the renewal of so many locks with a ttl of 6 s. */
export async function playRenewal(place: Place, player: Player, locks: number): Promise<number> {
  const ttlMs = 6_000;
  const held = taskOf(place, player, { op: 'hold', own: true, lanes: locks, ttlMs });
  const holder = new Client(player.command(held), place.cores);
  try {
    await holder.line(HELD_WITHIN_MS);
    return await commandsPerSecond(place.control, 2 * ttlMs);
  } finally {
    await holder.kill();
  }
}

async function commandsPerSecond(control: Redis, forMs: number): Promise<number> {
  const read = async (): Promise<number> => {
    const text = await control.info('commandstats');
    return [...text.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  };
  const before = await read();
  const from = machineNow();
  await new Promise((resolve) => setTimeout(resolve, forMs));
  const calls = (await read()) - before;
  return (1_000 * calls) / (machineNow() - from);
}

async function cpuMicros(control: Redis): Promise<number> {
  const text = await control.info('cpu');
  const read = (name: string): number => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(text)?.[1] ?? 0);
  return 1e6 * (read('used_cpu_sys') + read('used_cpu_user'));
}
