/** A worker of the lab: one client of a store, in a process of its own, which writes down what its locks do. */
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError, type Lease, type LockManager, type ManagerOptions } from '@locks/core';
import { serveCalls } from '@locks/core/conformance/process';
import { renewalThread } from '@locks/core/renewal-thread';
import { type HistoryMode, HistoryRecorder, type RecordedHold, recordTrace } from '@locks/history';
import type { FaultLab } from '../../fault-lab/fault-lab.ts';
import { SetClient } from '../kept-set.ts';
import { LOOPS, PERMITS, RESOURCES, type Workload } from '../workloads.ts';
import { historyFile, type LabWorkerCommands, type LabWorkerSetup } from './worker-commands.ts';

const WAIT_MS = 5_000;
/** Whoever fails at once must not fail thousands of times. */
const AFTER_FAILURE_MS = 20;

const setup = JSON.parse(process.argv[2] ?? '') as LabWorkerSetup;
const sets = new SetClient(setup.setAt);
let stopping = false;
let loops: Promise<unknown> = Promise.resolve();

// Pools of some clients report broken connections as uncaught errors. The history judges; the process goes on.
process.on('unhandledRejection', () => undefined);
process.on('uncaughtException', () => undefined);

serveCalls(commands());

async function commands(): Promise<LabWorkerCommands> {
  const { traces, name } = setup;
  const trace = traces === undefined ? undefined : recordTrace(join(traces, `${name}.jsonl`));
  const { default: Lab } = (await import(setup.module)) as { default: new () => FaultLab<object> };
  const locks = await new Lab().locks(setup.address as never, { ...setup.options, ...threadOf(setup) });
  return {
    async start() {
      loops = Promise.all(setup.workloads.map((workload) => startLoops(locks, workload)));
    },
    async block(ms) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    },
    async stop() {
      stopping = true;
      await loops;
      sets.close();
      await trace?.close();
    },
    async ghosts(withinMs) {
      const counted = setup.workloads.map(async (workload) => [
        workload,
        await ghostsOf(locks, RESOURCES[workload], withinMs),
      ]);
      return Object.fromEntries(await Promise.all(counted));
    },
  };
}

function threadOf({ maxBlockedMs }: LabWorkerSetup): ManagerOptions {
  if (maxBlockedMs === undefined) return {};
  const module = new URL('thread-backend.ts', import.meta.url);
  module.searchParams.set('setup', JSON.stringify(setup));
  return { renewalThread: renewalThread(module, { maxBlockedMs }) };
}

async function ghostsOf(locks: LockManager, names: readonly string[], withinMs: number): Promise<number> {
  const end = performance.now() + withinMs;
  const isFree = async (name: string): Promise<boolean> => {
    // A client that has just connected may fail at first.
    for (let left = withinMs; left > 0; left = end - performance.now()) {
      try {
        const lease: Lease | undefined = await locks.lock(name).acquire({ waitMs: Math.max(1, left) });
        if (lease === undefined) continue;
        await lease.release();
        return true;
      } catch {
        await sleep(AFTER_FAILURE_MS);
      }
    }
    return false;
  };
  const free = await Promise.all(names.map(isFree));
  return free.filter((one) => !one).length;
}

async function startLoops(locks: LockManager, workload: Workload): Promise<void> {
  const file = openSync(historyFile(setup.folder, workload, setup.name), 'a');
  // Written before the call goes on: the lines of a killed process are there.
  const recorder = new HistoryRecorder(setup.name, (line) => writeSync(file, line));
  const oneLoop = async (loop: number): Promise<void> => {
    for (let round = loop; !stopping; round += 1) {
      try {
        await ROUNDS[workload](locks, recorder, round);
      } catch {
        // The recorder has the outcome.
        await sleep(AFTER_FAILURE_MS);
      }
    }
  };
  await Promise.all(Array.from({ length: LOOPS }, (_, loop) => oneLoop(loop)));
}

type Round = (locks: LockManager, recorder: HistoryRecorder, round: number) => Promise<void>;

const ROUNDS: Readonly<Record<Workload, Round>> = {
  async mutex(locks, recorder, round) {
    const name = pick(RESOURCES.mutex, round);
    await section(await recorder.acquire(name, () => locks.lock(name).acquire({ waitMs: WAIT_MS })));
  },
  async 'lock-set'(locks, recorder, round) {
    const name = pick(RESOURCES['lock-set'], round);
    const lock = locks.lock(name);
    const hold = await recorder.acquire(name, () => lock.acquire({ waitMs: WAIT_MS }));
    if (hold === undefined) return;
    const { fencingToken } = hold.lease;
    const added = `${setup.name} ${hold.acquisitionId}`;
    const work = sleep(setup.holdMs * Math.random());
    await Promise.all([
      sets.add('plain', added, () => work),
      ...(fencingToken === undefined ? [] : [sets.add('fenced', added, () => work, String(fencingToken))]),
    ]);
    hold.confirm();
    await hold.release(() => hold.lease.release());
  },
  async 'readers-writer'(locks, recorder, round) {
    const name = pick(RESOURCES['readers-writer'], round);
    const kind = Math.random() < 0.3 ? 'exclusive' : 'shared';
    const { read, write } = locks.readWriteLock(name);
    const acquire = (): Promise<Lease> =>
      kind === 'shared' ? read.acquire({ waitMs: WAIT_MS }) : write.acquire({ waitMs: WAIT_MS });
    await section(await recorder.acquire(name, acquire, { kind }));
  },
  async permits(locks, recorder, round) {
    const name = pick(RESOURCES.permits, round);
    const weight = Math.random() < 0.3 ? 2 : 1;
    const mode: HistoryMode = { kind: 'permit', weight, limit: PERMITS };
    const slots = locks.semaphore(name, PERMITS);
    await section(await recorder.acquire(name, () => slots.acquire({ waitMs: WAIT_MS, weight }), mode));
  },
  async all(locks, recorder, round) {
    const names = [pick(RESOURCES.all, round), pick(RESOURCES.all, round + 1)];
    const set = locks.all(names.map((name) => locks.lock(name)));
    const acquiring = set.acquire({ waitMs: WAIT_MS });
    const memberOf = async (index: number): Promise<Lease> => (await acquiring).leases[index] as Lease;
    const asked = names.map((name, index) => recorder.acquire(name, () => memberOf(index)));
    const settled = await Promise.allSettled(asked);
    const lease = await acquiring;
    await sleep(setup.holdMs * Math.random());
    // All members note the beginning of their release before the set sends anything.
    const releasing = Promise.resolve().then(() => lease.release());
    const released = settled.map(async (one) => {
      if (one.status === 'rejected') return;
      one.value?.confirm();
      await one.value?.release(() => ofMember(one.value?.resource, releasing));
    });
    for (const one of await Promise.allSettled(released)) if (one.status === 'rejected') throw one.reason;
  },
};

/** The release of a set, as that of one member: the loss of another member says nothing about it. */
async function ofMember(resource: string | undefined, releasing: Promise<void>): Promise<void> {
  try {
    await releasing;
  } catch (error) {
    if (!isLockError(error) || error.lockName === resource) throw error;
    throw new Error('another member of the set was not released', { cause: error });
  }
}

/** A critical section in which the holder looks at its lease now and then. */
async function section(hold: RecordedHold<Lease> | undefined): Promise<void> {
  if (hold === undefined) return;
  await sleep((setup.holdMs / 2) * Math.random());
  hold.confirm();
  await sleep((setup.holdMs / 2) * Math.random());
  hold.confirm();
  await hold.release(() => hold.lease.release());
}

function pick(names: readonly string[], round: number): string {
  return names[round % names.length] as string;
}
