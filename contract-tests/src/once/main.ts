/** The main module of a machine with a clock of its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type FencedLease, isLockError, type LockManager } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { serveCalls } from '@locks/core/conformance/process';
import { coalesce, every, newestWins, once, type ResultStore } from '@locks/once';
import { harnessUrl } from '../harness-names.ts';
import type { MachineCommands, MachineSetup } from './commands.ts';
import { storesOf } from './records.ts';

const { store, env, label, aheadMs } = JSON.parse(process.argv[2] as string) as MachineSetup;
Object.assign(process.env, env);
const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
// The types cannot know what the harness makes; each of these has tokens.
const locks = createLocks(await harness.createBackend()) as LockManager as LockManager<FencedLease>;
const { record, results } = await storesOf[store]();
const begun: string[] = [];
const built: string[] = [];
let newestBegun = 0;
let lease: FencedLease | undefined;

const commands: MachineCommands = {
  ...record,
  async once({ job, slotMs, work, ...options }, trueMs) {
    const all = { ...options, slot: every(slotMs), record, label, clock: () => trueMs + aheadMs };
    return once(locks, job, all, async ({ slot }) => {
      begun.push(slot);
      if (work === 'fail') throw new Error('the job failed');
      if (work === 'die') process.kill(process.pid, 'SIGKILL');
      else await sleep(work);
      return label;
    });
  },
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
    const all = { ...options, store: resultStore() };
    return Promise.all(Array.from({ length: callers }, () => coalesce(locks, key, build, all)));
  },
  async built() {
    return built;
  },
  async newest(name, ms) {
    const work = async (): Promise<string> => {
      newestBegun += 1;
      await sleep(ms);
      return 'ran';
    };
    return newestWins(locks, name, work, { waitMs: 40_000, label }).catch((error: unknown) =>
      isLockError(error) ? error.code : String(error),
    );
  },
  async newestBegun() {
    return newestBegun;
  },
  async waiting(name) {
    return (await locks.inspect(name)).waiters.length;
  },
  getResult: (key) => resultStore().get(key),
  setResult: (...args) => resultStore().set(...args),
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

function resultStore(): ResultStore {
  if (results === undefined) throw new Error(`there is no result store for ${store}`);
  return results;
}

serveCalls(commands);
