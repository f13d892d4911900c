/** The main module of a process that takes locks in a bad order. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, isLockError, type Lock, type LockManager } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { serveCalls } from '@locks/core/conformance/process';
import { harnessUrl } from '../harness-names.ts';
import type { DeadlockCommands, ProcessSetup, WaitOutcome, WantedLock } from './commands.ts';

const { store, env, ...options } = JSON.parse(process.argv[2] as string) as ProcessSetup;
Object.assign(process.env, env);
const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
const locks = createLocks(await harness.createBackend(), options) as LockManager;

/** Ends the present `hold`: the locks are held until the lock that is wanted was acquired, or refused. */
let want: (lock: Lock) => void = () => {};
let outcome: Promise<WaitOutcome> | undefined;

const commands: DeadlockCommands = {
  async hold(wanted, together = false) {
    const wish = new Promise<Lock>((resolve) => (want = resolve));
    await new Promise<void>((isHeld, failed) => {
      const work = async (): Promise<WaitOutcome> => {
        isHeld();
        return outcomeOf(await wish);
      };
      outcome = together ? locks.all(wanted.map(lockOf)).run(work) : nested(wanted.map(lockOf), work);
      outcome.catch(failed);
    });
  },
  async want(lock) {
    want(lockOf(lock));
    return (await outcome) as WaitOutcome;
  },
  async workAtRandom(wanted, rounds) {
    let [done, deadlocks, timeouts] = [0, 0, 0];
    while (done < rounds) {
      const count = 2 + Math.floor(Math.random() * 2);
      const chosen = wanted.toSorted(() => Math.random() - 0.5).slice(0, count);
      try {
        await nested(chosen.map(lockOf), () => sleep(Math.random() * 5), 5);
        done += 1;
      } catch (error) {
        if (isLockError(error, 'LOCK_DEADLOCK')) deadlocks += 1;
        else if (isLockError(error, 'LOCK_TIMEOUT')) timeouts += 1;
        else throw error;
        if (timeouts > 0) break;
        // Who gave up tries again later than those who went on.
        await sleep(Math.random() * 50);
      }
    }
    return { done, deadlocks, timeouts };
  },
};
serveCalls(commands);

function lockOf({ name, how = 'lock' }: WantedLock): Lock {
  switch (how) {
    case 'lock':
      return locks.lock(name);
    case 'read':
      return locks.readWriteLock(name).read;
    case 'write':
      return locks.readWriteLock(name).write;
    case 'permit':
      return locks.semaphore(name, 2) as unknown as Lock;
    default:
      return how satisfies never;
  }
}

/** Runs work under locks that are taken one after the other. */
function nested<T>([first, ...others]: readonly Lock[], work: () => Promise<T>, pauseMs = 0): Promise<T> {
  if (first === undefined) return work();
  return first.run(async () => {
    if (pauseMs > 0) await sleep(Math.random() * pauseMs);
    return await nested(others, work, pauseMs);
  });
}

async function outcomeOf(lock: Lock): Promise<WaitOutcome> {
  const startedAt = performance.now();
  const tookMs = (): number => performance.now() - startedAt;
  try {
    await lock.run(() => undefined);
    return { code: undefined, circle: undefined, tookMs: tookMs() };
  } catch (error) {
    if (!isLockError(error)) throw error;
    return { code: error.code, circle: error.circle, tookMs: tookMs() };
  }
}
