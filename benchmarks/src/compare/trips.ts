import { type Proxy, startProxy } from '@locks/test-servers';
import type { Address, Stage } from '../conduct/stage.ts';
import type { Contender } from '../contenders/contender.ts';
import { machineNow } from '../measure/clock.ts';
import { readHistory } from '../measure/history.ts';
import { median, quantile } from '../measure/quantiles.ts';

/** Round trips to the server, one after another: what is sent together is one. */
export interface TripsResult extends Pick<Contender, 'name' | 'kind' | 'floor'> {
  /** Of the network, each way. */
  readonly latencyMs: number;
  readonly pingMs: number;
  /** Of an uncontended acquire, and of acquire and release. */
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
  /** Each way. @defaultValue 10, so much that everything else does not matter */
  readonly latencyMs?: number;
  /** Of one measurement. */
  readonly forMs: number;
}

/** How often something had to be waited for is what the swiftest tell: the others were held up by something else. */
const SWIFT = 0.1;
const PINGS = 9;
const WARM_UP_MS = 300;
const WAITERS = 8;
const TURNS = 3;
const NOTICE_MS = 30;

/** Puts a slow network before the servers, and takes times in units of its round trip. */
export async function measureTrips(
  stage: Stage,
  contender: Contender,
  { contended, forMs, latencyMs = 10 }: TripsTask,
): Promise<TripsResult> {
  const { network } = stage.server;
  if (network === undefined) throw new Error('This server has no address.');
  const proxies = await Promise.all(network.addresses.map((address) => slowly(address, latencyMs)));
  const url = network.urlAt(proxies);
  const crew = Array.from({ length: contended ? 2 : 1 }, () => stage.startWorker());
  try {
    await Promise.all(crew.map((worker) => worker.call('open', contender.store, contender.name, url)));
    const [worker] = crew as [(typeof crew)[number]];
    const names = [`trips:${contender.name}`];
    await worker.call('loop', { names, forMs: WARM_UP_MS });
    const { leastMs: pingMs } = await worker.call('ping', PINGS, 1);
    const { waits, wholes } = await worker.call('loop', { names, forMs });
    const gapOf = async (workers: typeof crew): Promise<number> => {
      // In the first one, waiters open what they need for waiting.
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
      ...(contended && { handOff: await gapOf([worker]), handOffBetween: await gapOf(crew) }),
    };
  } finally {
    await Promise.all(crew.map((worker) => stage.dismiss(worker)));
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
  workers: readonly ReturnType<Stage['startWorker']>[],
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
    // Whoever is not served by then is not worth waiting for: the median tells.
    stopAt: startAt + 3 * forMs,
  };
  const results = await Promise.all(workers.map((worker) => worker.call('contend', task)));
  const holds = results.flatMap((result, process) => result.holds.map((hold) => ({ ...hold, process })));
  if (workers.length === 1) return median(readHistory(holds).gaps);
  const inOrder = holds.sort((one, other) => one.enteredAt - other.enteredAt);
  const changes = inOrder.flatMap((hold, index) => {
    const before = inOrder[index - 1];
    return before === undefined || before.process === hold.process ? [] : [hold.enteredAt - before.leftAt];
  });
  return median(changes);
}
