import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '@locks/core/conformance/process';
import type { Direction, Proxy } from '@locks/core/conformance/proxy';
import type { CrewMember, WorkerCrew } from './worker-crew.ts';
import type { FaultDraws } from './fault-draws.ts';

/** What is done to a worker, as the report shows it. */
export interface Strike {
  readonly fault: FaultName;
  readonly worker: string;
  /** The beginning and the end, on the monotonic clock of the machine, in milliseconds. */
  readonly from: number;
  readonly until: number;
  /** What was done, for readers. */
  readonly detail: string;
}

interface FaultContext {
  readonly crew: WorkerCrew;
  readonly worker: CrewMember;
  readonly random: FaultDraws;
  /** How long a hold lasts after its client was last heard of. */
  readonly holdMs: number;
  /** How long a dead holder keeps others out at most. */
  readonly freeMs: number;
}

interface Fault {
  /** For the report. */
  readonly about: string;
  /** Where it takes place: what is not there cannot be broken. */
  readonly on: 'network' | 'process' | 'signals';
  /** One fault, healed when it resolves; gives what was done. */
  strike(context: FaultContext): Promise<string>;
}

const ms = (time: number): string => `${Math.round(time)} ms`;

const FAULT_TABLE = {
  kill: {
    about: 'a worker is killed (kill -9), and another one starts',
    on: 'process',
    async strike({ crew, worker, holdMs, freeMs }) {
      await worker.process.call.untilHolding(holdMs);
      await crew.replace(worker);
      // The locks of the dead worker become free in peace: how long that takes is measured.
      await sleep(freeMs);
      return 'killed';
    },
  },
  pause: {
    about: 'a worker stands still (SIGSTOP) for less time than a hold lasts',
    on: 'signals',
    strike: (context) => stopped(context, context.random.between(0.1, 0.6) * context.holdMs),
  },
  'long-pause': {
    about: 'a worker stands still (SIGSTOP) for longer than a hold lasts',
    on: 'signals',
    strike: (context) => stopped(context, context.random.between(1.2, 2) * context.holdMs),
  },
  block: {
    about: 'the event loop of a worker is blocked, half of the times for longer than a hold lasts',
    on: 'process',
    async strike({ worker, random, holdMs }) {
      const time = durationOf(random, holdMs);
      await worker.process.call.block(time);
      return `blocked for ${ms(time)}`;
    },
  },
  clock: {
    about: 'the wall clock of a worker jumps forward or back',
    on: 'process',
    async strike({ worker, random, holdMs }) {
      const offsetMs = random.one([-1, 1]) * random.between(0.3, 3) * holdMs;
      await worker.process.call.setClock(offsetMs);
      await sleep(random.between(0.3, 1) * holdMs);
      await worker.process.call.setClock(0);
      return `the clock was ${ms(Math.abs(offsetMs))} ${offsetMs < 0 ? 'behind' : 'ahead'}`;
    },
  },
  cut: onNetwork('the connections of a worker are reset, and new ones refused, for a while', (proxies) => {
    for (const proxy of proxies) {
      proxy.refuse();
      proxy.cut();
    }
    return 'cut';
  }),
  'one-way': onNetwork('what a worker sends, or what it is answered, is lost', (proxies, random) => {
    const direction: Direction = random.one(['toServer', 'toClient']);
    for (const proxy of proxies) proxy.blackhole({ direction });
    return direction === 'toServer' ? 'nothing reached the store' : 'nothing came from the store';
  }),
  late: onNetwork('every message of a worker takes 50 to 300 ms longer', (proxies, random) => {
    const latency = random.between(50, 300);
    for (const proxy of proxies) proxy.latency(latency);
    return `${ms(latency)} late`;
  }),
  'lost-reply': onNetwork(
    'a call of a worker is carried out, and its connection ends with the reply',
    (proxies) => {
      for (const proxy of proxies) proxy.cutAtNextReply();
      return 'a reply was lost';
    },
  ),
} as const satisfies Readonly<Record<string, Fault>>;

/** The name of a fault. */
export type FaultName = keyof typeof FAULT_TABLE;

/** The names of all faults. */
export const FAULTS = Object.freeze(Object.keys(FAULT_TABLE)) as readonly FaultName[];

export function faultOf(name: FaultName): Fault {
  return FAULT_TABLE[name];
}

/** Makes one fault, and tells what was done, when and to whom. */
export async function strike(fault: FaultName, context: FaultContext): Promise<Strike> {
  const from = machineNow();
  const detail = await faultOf(fault).strike(context);
  return { fault, worker: context.worker.name, from, until: machineNow(), detail };
}

async function stopped({ worker }: FaultContext, time: number): Promise<string> {
  worker.process.freeze();
  try {
    await sleep(time);
  } finally {
    worker.process.thaw();
  }
  return `stood still for ${ms(time)}`;
}

/** Short of what a hold lasts, or past it. */
function durationOf(random: FaultDraws, holdMs: number): number {
  return random.next() < 0.5 ? random.between(0.05, 0.6) * holdMs : random.between(1.1, 1.8) * holdMs;
}

function onNetwork(
  about: string,
  breakNetwork: (proxies: readonly Proxy[], random: FaultDraws) => string,
): Fault {
  return {
    about,
    on: 'network',
    async strike({ worker, random, holdMs }) {
      const proxies = await worker.proxies();
      const what = breakNetwork(proxies, random);
      const time = durationOf(random, holdMs);
      await sleep(time);
      await Promise.all(proxies.map((proxy) => proxy.heal()));
      return `${what}, for ${ms(time)}`;
    },
  };
}
