/** The main module of a worker: one client of a store, in a process of its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError, type Lease, type LockManager } from '@locks/core';
import { machineNow, serveCalls } from '@locks/core/conformance/process';
import type { FaultLab } from '../fault-lab.ts';
import type { LoadOptions, LoadSection, LockKind, WorkerCommands } from './commands.ts';

/** What the default export of a store's module is, as far as a worker knows. */
type WorkerLab = FaultLab & { write?(key: string, value: string, token?: bigint): Promise<unknown> };

const [module = '', setup = ''] = process.argv.slice(2);
const { address, options } = JSON.parse(setup);
/** Histories tell clients apart by it. */
const who = `${options.library ?? 'client'} ${process.pid}`;

const unhandled: string[] = [];
process.on('unhandledRejection', (error) => unhandled.push(String(error)));
process.on('uncaughtException', (error) => unhandled.push(String(error)));

const leases: Lease[] = [];
const sections: LoadSection[] = [];
const failures: { at: number; what: string }[] = [];
let loading: Promise<unknown> | undefined;
let stopping = false;

serveCalls(commands());

async function commands(): Promise<WorkerCommands> {
  const { default: Lab } = (await import(module)) as { default: new () => WorkerLab };
  const lab = new Lab();
  const locks = await lab.locks(address, options);
  return {
    async acquire(name, acquireOptions, kind = 'exclusive') {
      const lease = await lockOf(locks, name, kind).acquire(acquireOptions);
      // Made now, so that a loss is reported without anybody asking.
      void lease.signal;
      const { acquisitionId, fencingToken } = lease;
      return { id: leases.push(lease) - 1, acquisitionId, token: String(fencingToken) };
    },
    async release(id) {
      await leaseOf(id).release();
    },
    async state(id) {
      const { validForMs, signal } = leaseOf(id);
      return { validForMs, aborted: signal.aborted, reason: reasonOf(signal) };
    },
    async loss(id) {
      const { signal } = leaseOf(id);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return reasonOf(signal);
    },
    async write(id, key, value, how) {
      await lab.write?.(key, value, how === 'fenced' ? leaseOf(id).fencingToken : undefined);
    },
    async close() {
      const closedAt = performance.now();
      const closing = locks.close().then(
        () => 'closed',
        (error: unknown) => (isLockError(error) ? error.code : String(error)),
      );
      const outcome = await closing;
      const tookMs = performance.now() - closedAt;
      // After the answer to this call.
      setImmediate(() => {
        process.disconnect();
        void lab[Symbol.asyncDispose]();
      });
      return { outcome, tookMs };
    },
    async startLoad(load) {
      stopping = false;
      loading = Promise.all(Array.from({ length: load.loops }, (_, loop) => contend(locks, loop, load)));
    },
    async stopLoad() {
      stopping = true;
      await loading;
      return { sections: sections.splice(0), failures: failures.splice(0), unhandled: unhandled.splice(0) };
    },
  };
}

function lockOf(locks: LockManager, name: string, kind: LockKind) {
  if (kind === 'exclusive') return locks.lock(name);
  if (kind === 'shared') return locks.readWriteLock(name).read;
  const semaphore = locks.semaphore(name, kind.permits);
  return { acquire: (given?: object) => semaphore.acquire({ ...given, weight: kind.weight }) };
}

async function contend(
  locks: LockManager,
  loop: number,
  { resources, kinds = {}, holdMs, waitMs }: LoadOptions,
): Promise<void> {
  for (let round = loop; !stopping; round += 1) {
    const resource = resources[round % resources.length] as string;
    const choice = kinds[resource] ?? ['exclusive'];
    const kind = choice[Math.floor(round / resources.length) % choice.length] as LockKind;
    const askedAt = machineNow();
    try {
      const lease = await lockOf(locks, resource, kind).acquire({ waitMs });
      await enter(lease, { resource, kind, who: `${who} loop ${loop}` }, holdMs);
      await lease.release();
    } catch (error) {
      failures.push({ at: machineNow(), what: describe(error, askedAt) });
      // Whoever fails fast must not do so thousands of times.
      await sleep(20);
    }
  }
}

async function enter(
  lease: Lease,
  section: Pick<LoadSection, 'resource' | 'kind' | 'who'>,
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
  // Before the check: a process that is frozen between the two was inside until then, and not until it goes on.
  const leftAt = machineNow();
  const lost = lease.signal.aborted ? reasonOf(lease.signal) : undefined;
  // A frozen process hears of its loss when it goes on; its lease had ended before.
  const endOfLease = lost === undefined ? Number.POSITIVE_INFINITY : enteredAt + validForMs;
  const endedAt = Math.min(lostAt ?? Number.POSITIVE_INFINITY, endOfLease, leftAt);
  sections.push({ ...section, token: String(lease.fencingToken), enteredAt, endedAt, lost });
}

function describe(error: unknown, askedAt: number): string {
  const what = isLockError(error) ? `${error.code} ${error.reason ?? error.message}` : String(error);
  return `${what} (${who}, ${Math.round(machineNow() - askedAt)} ms after the call)`;
}

function leaseOf(id: number): Lease {
  const lease = leases[id];
  if (lease === undefined) throw new Error(`There is no lease ${id} here.`);
  return lease;
}

function reasonOf(signal: AbortSignal): string | undefined {
  return isLockError(signal.reason) ? (signal.reason.reason ?? signal.reason.code) : undefined;
}
