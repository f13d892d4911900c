/** The main module of a machine with a clock of its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type FencedLease, isLockError, type LockManager } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { serveCalls } from '@locks/core/conformance/process';
import { coalesce, every, newestWins, once, resetSlot } from '@locks/once';
import { harnessUrl } from '../harness-names.ts';
import type { MachineCommands, MachineSetup } from './commands.ts';
import { storesOf } from './slot-stores.ts';

const { store, env, label, aheadMs } = JSON.parse(process.argv[2] as string) as MachineSetup;
Object.assign(process.env, env);
const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
// The types cannot know what the harness makes; each of these has tokens.
const locks = createLocks(await harness.createBackend()) as LockManager as LockManager<FencedLease>;
const { slots, results } = await storesOf[store]();
const begun: string[] = [];
const built: string[] = [];
let endWork = (): void => {};
const told = new Promise<void>((resolve) => (endWork = resolve));
let newestBegun = 0;
let lease: FencedLease | undefined;

const commands: MachineCommands = {
  ...slots,
  async once({ job, slotMs, work, ...options }, trueMs) {
    const all = { ...options, slot: every(slotMs), slots, label, clock: () => trueMs + aheadMs };
    return once(
      locks,
      job,
      async ({ slot }) => {
        begun.push(slot);
        if (work === 'fail') throw new Error('the job failed');
        if (work === 'die') process.kill(process.pid, 'SIGKILL');
        else await sleep(work);
        return label;
      },
      all,
    );
  },
  reset: (job) => resetSlot(locks, job, { slots, label }),
  async begun() {
    return begun;
  },
  async coalesce({ key, callers, work, ...options }) {
    const build = async (): Promise<string> => {
      const run = `${label}:${built.length}`;
      built.push(run);
      await sleep(work);
      return run;
    };
    const all = { ...options, store: results };
    return Promise.all(Array.from({ length: callers }, () => coalesce(locks, key, build, all)));
  },
  async built() {
    return built;
  },
  async newest(name, until) {
    const work = async (): Promise<string> => {
      newestBegun += 1;
      await (until === 'until told' ? told : sleep(until));
      return 'ran';
    };
    return newestWins(locks, name, work, { waitMs: 40_000, label }).catch((error: unknown) =>
      isLockError(error) ? error.code : String(error),
    );
  },
  async endWork() {
    endWork();
  },
  async newestBegun() {
    return newestBegun;
  },
  async waiting(name) {
    return (await locks.inspect(name)).waiters.length;
  },
  getResult: (key) => results.get(key),
  setResult: (...args) => results.set(...args),
  async hold(name, options) {
    lease = await locks.lock(name).acquire({ ...options, renewal: 'manual' });
  },
  async held() {
    if (lease === undefined) throw new Error('nothing is held');
    const { validForMs, signal } = lease;
    const released = await lease.release().then(
      () => 'released',
      (error: unknown) => (isLockError(error) ? error.code : String(error)),
    );
    return { validForMs, isAborted: signal.aborted, released };
  },
};

serveCalls(commands);
