import { type Proxy, startProxy } from '@locks/test-servers';
import type { Address, Testbed } from '../conduct/testbed.ts';
import type { Contender } from '../contenders/contender.ts';
import { machineNow } from '../measure/clock.ts';
import { readHistory } from '../measure/history.ts';
import { median, quantile } from '../measure/quantiles.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import { label } from './tables.ts';

/** Round trips to the server, one after another; requests that are sent together count as one. */
export interface TripsResult extends Pick<Contender, 'name' | 'kind' | 'floor'> {
  /** The latency of the network, each way. */
  readonly latencyMs: number;
  readonly pingMs: number;
  /** Round trips of an uncontended acquire, and of acquire and release. */
  readonly acquire: number;
  readonly pair: number;
  /** The median time of acquire and release. */
  readonly pairMs: number;
  /** From one holder's exit to the entry of the next, in the same and in another process. */
  readonly handOff?: number;
  readonly handOffBetween?: number;
}

export interface TripsTask {
  readonly contended: boolean;
  /** Each way. @defaultValue 10, so that everything else is negligible */
  readonly latencyMs?: number;
  /** The length of one measurement. */
  readonly forMs: number;
}

/** The fastest measurements show the number of round trips: the others were delayed by something else. */
const SWIFT = 0.1;
const PINGS = 9;
const WARM_UP_MS = 300;
const WAITERS = 8;
const TURNS = 3;
const NOTICE_MS = 30;

/** Puts a slow network before the servers, and takes times in units of its round trip. */
export async function measureTrips(
  testbed: Testbed,
  contender: Contender,
  { contended, forMs, latencyMs = 10 }: TripsTask,
): Promise<TripsResult> {
  const { network } = testbed.server;
  if (network === undefined) throw new Error('This server has no address.');
  const proxies = await Promise.all(network.addresses.map((address) => slowly(address, latencyMs)));
  const url = network.urlAt(proxies);
  const both = Array.from({ length: contended ? 2 : 1 }, () => testbed.startWorker());
  try {
    await Promise.all(both.map((worker) => worker.call.open(contender.store, contender.name, url)));
    const [worker] = both as [(typeof both)[number]];
    const names = [`trips:${contender.name}`];
    await worker.call.loop({ names, forMs: WARM_UP_MS });
    const { leastMs: pingMs } = await worker.call.ping(PINGS, 1);
    const { waits, wholes } = await worker.call.loop({ names, forMs });
    const gapOf = async (workers: typeof both): Promise<number> => {
      // In the first round, waiters open what they need for waiting.
      await contend(workers, contender, forMs);
      return (await contend(workers, contender, forMs)) / pingMs;
    };
    return {
      name: contender.name,
      kind: contender.kind,
      floor: contender.floor,
      latencyMs,
      pingMs,
      acquire: quantile(waits, SWIFT) / pingMs,
      pair: quantile(wholes, SWIFT) / pingMs,
      pairMs: median(wholes),
      ...(contended && { handOff: await gapOf([worker]), handOffBetween: await gapOf(both) }),
    };
  } finally {
    await Promise.all(both.map((worker) => testbed.end(worker)));
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  }
}

async function slowly(address: Address, latencyMs: number): Promise<Proxy> {
  const proxy = await startProxy(address, { protocol: 'raw' });
  proxy.latency(latencyMs);
  return proxy;
}

let contentions = 0;

/** The median gap; between processes only those gaps count in which the lock changes the process. */
async function contend(
  workers: readonly ReturnType<Testbed['startWorker']>[],
  contender: Contender,
  forMs: number,
): Promise<number> {
  contentions += 1;
  const startAt = machineNow() + NOTICE_MS;
  const task = {
    name: `trips:${contender.name}:${contentions}`,
    waiters: WAITERS / workers.length,
    turns: TURNS,
    sectionMs: 1,
    startAt,
    // Waiters that are not served by then are not needed for the median.
    stopAt: startAt + 3 * forMs,
  };
  const results = await Promise.all(workers.map((worker) => worker.call.contend(task)));
  const holds = results.flatMap((result, process) => result.holds.map((hold) => ({ ...hold, process })));
  if (workers.length === 1) return median(readHistory(holds).gaps);
  const inOrder = holds.sort((one, other) => one.enteredAt - other.enteredAt);
  const changes = inOrder.flatMap((hold, index) => {
    const before = inOrder[index - 1];
    return before === undefined || before.process === hold.process ? [] : [hold.enteredAt - before.leftAt];
  });
  return median(changes);
}

export function tripsSection(trips: readonly TripsResult[]): Section {
  const contended = trips.some(({ handOff }) => handOff !== undefined);
  const figure = (value: number | undefined): string => value?.toFixed(2) ?? '';
  return {
    title: 'Round trips, one after another',
    table: tableOf(trips, [
      ['', label],
      ['acquire', ({ acquire }) => figure(acquire)],
      ['acquire and release', ({ pair }) => figure(pair)],
      contended && ['hand-off', ({ handOff }) => figure(handOff)],
      contended && ['hand-off to another process', ({ handOffBetween }) => figure(handOffBetween)],
      ['latency ms', ({ latencyMs }) => String(latencyMs)],
      ['PING ms', ({ pingMs }) => pingMs.toFixed(1)],
    ]),
    note: 'Times through a proxy that delays everything by the latency each way, by the time of a `PING` there.',
  };
}
