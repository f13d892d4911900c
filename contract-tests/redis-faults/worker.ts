/** The main module of a worker process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, isLockError, type Lease } from '@locks/core';
import { openClient } from '../src/redis/open-client.ts';
import type { Answer, Kind, LoadOptions, Order, Orders, Stay, WorkerSetup } from './worker-orders.ts';
import { machineNow } from './worker-orders.ts';

const setup = JSON.parse(process.argv[2] as string) as WorkerSetup;
const { library, address, backend, ...lockOptions } = setup;
const client = await openClient(library, address);
const locks = createLocks(client.backend(backend), lockOptions);

const unhandled: string[] = [];
process.on('unhandledRejection', (error) => unhandled.push(String(error)));
process.on('uncaughtException', (error) => unhandled.push(String(error)));
process.on('disconnect', () => process.exit());

const leases: Lease[] = [];
const stays: Stay[] = [];
const failures: { at: number; what: string }[] = [];
let loading: Promise<unknown> | undefined;
let stopping = false;

const orders: Orders = {
  async acquire(name, options, kind = 'exclusive') {
    const lease = await acquire(name, options, kind);
    const { acquisitionId, fencingToken } = lease;
    // Made now, so that a loss is told without anybody asking.
    void lease.signal;
    return { id: leases.push(lease) - 1, acquisitionId, token: String(fencingToken), at: machineNow() };
  },
  async write(id, key, value, how) {
    const { fencingToken } = leaseOf(id);
    return how === 'plain' ? client.set(key, value) : client.fencedSet(key, value, fencingToken as bigint);
  },
  async release(id) {
    await leaseOf(id).release();
  },
  async state(id) {
    const { validForMs, signal } = leaseOf(id);
    return { validForMs, aborted: signal.aborted, reason: reasonOf(signal) };
  },
  async startLoad(options) {
    stopping = false;
    loading = Promise.all(Array.from({ length: options.loops }, (_, loop) => run(loop, options)));
  },
  async stopLoad() {
    stopping = true;
    await loading;
    return { stays: stays.splice(0), failures: failures.splice(0), unhandled: unhandled.splice(0) };
  },
};

function acquire(name: string, options: Parameters<Orders['acquire']>[1], kind: Kind): Promise<Lease> {
  switch (kind) {
    case 'exclusive':
      return locks.lock(name).acquire(options);
    case 'shared':
      return locks.readWriteLock(name).read.acquire(options);
    default:
      return locks.semaphore(name, kind.permits).acquire({ ...options, weight: kind.weight });
  }
}

async function run(loop: number, { resources, kinds = {}, holdMs, waitMs }: LoadOptions): Promise<void> {
  for (let round = loop; !stopping; round += 1) {
    const resource = resources[round % resources.length] as string;
    const choice = kinds[resource] ?? ['exclusive'];
    const kind = choice[Math.floor(round / resources.length) % choice.length] as Kind;
    const askedAt = machineNow();
    try {
      const lease = await acquire(resource, { waitMs }, kind);
      const who = `${library} ${process.pid} loop ${loop}`;
      await stay(lease, { resource, kind, who, askedAt }, holdMs);
      await lease.release();
    } catch (error) {
      failures.push({ at: machineNow(), what: describe(error, askedAt) });
      // Whoever fails fast must not do so thousands of times.
      await sleep(20);
    }
  }
}

async function stay(
  lease: Lease,
  of: Pick<Stay, 'resource' | 'kind' | 'who' | 'askedAt'>,
  holdMs: number,
): Promise<void> {
  const enteredAt = machineNow();
  const { validForMs } = lease;
  // Frozen between the grant and here, past its end: it sees that it must not enter.
  if (validForMs === 0) return;
  let lostAt: number | undefined;
  lease.signal.addEventListener('abort', () => {
    lostAt = machineNow();
  });
  await sleep(holdMs * Math.random() * 2);
  // Before the look: a process that is frozen between the two was inside until then, and not until it goes on.
  const leftAt = machineNow();
  const lost = lease.signal.aborted ? reasonOf(lease.signal) : undefined;
  // Told when it goes on, a frozen one: its lease had ended before.
  const endOfLease = lost === undefined ? Number.POSITIVE_INFINITY : enteredAt + validForMs;
  const endedAt = Math.min(lostAt ?? Number.POSITIVE_INFINITY, endOfLease, leftAt);
  stays.push({ ...of, token: String(lease.fencingToken), enteredAt, endedAt, lost });
}

function describe(error: unknown, askedAt: number): string {
  const what = isLockError(error) ? `${error.code} ${error.reason ?? error.message}` : String(error);
  return `${what} (${library} ${process.pid}, ${Math.round(machineNow() - askedAt)} ms after the call)`;
}

function leaseOf(id: number): Lease {
  const lease = leases[id];
  if (lease === undefined) throw new Error(`There is no lease ${id} here.`);
  return lease;
}

function reasonOf(signal: AbortSignal): string | undefined {
  return isLockError(signal.reason) ? (signal.reason.reason ?? signal.reason.code) : undefined;
}

const send = (answer: Answer | 'ready'): void => {
  process.send?.(answer);
};

process.on('message', ({ order, name, args }: Order) => {
  const obey = orders[name] as (...given: readonly unknown[]) => Promise<unknown>;
  obey(...args).then(
    (value) => send({ order, value }),
    (error: Error & { code?: string }) =>
      send({
        order,
        error: { message: error.message, ...(error.code !== undefined && { code: error.code }) },
      }),
  );
});
send('ready');
