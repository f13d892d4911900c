import type { Session } from '../contenders/contender.ts';
import { dwell, machineNow, sleepUntil } from '../measure/clock.ts';
import type { Hold } from '../measure/history.ts';
import type { Contended, ContendTask } from './methods.ts';

/** Time for the last holders to leave and release the lock. */
const GRACE_MS = 30;

/** Waiters that all want one lock at once, each for a short critical section, once or several times. */
export async function contend(session: Session, task: ContendTask): Promise<Contended> {
  const { name, waiters, weights = [1], turns, sectionMs, startAt, stopAt } = task;
  const holds: Hold[] = [];
  const waitingSince = new Map<number, number>();
  const waiter = async (index: number): Promise<void> => {
    const weight = weights[index % weights.length] as number;
    for (let turn = 0; turn < turns && (turn === 0 || machineNow() < stopAt); turn += 1) {
      const askedAt = machineNow();
      waitingSince.set(index, askedAt);
      const release = await session.acquire(name, weight);
      const enteredAt = machineNow();
      waitingSince.delete(index);
      const late = enteredAt >= stopAt;
      if (!late && sectionMs > 0) await dwell(sectionMs);
      holds.push({ askedAt, enteredAt, leftAt: machineNow(), late, weight });
      await release();
    }
  };
  await sleepUntil(startAt);
  const all = Promise.all(Array.from({ length: waiters }, (_, index) => waiter(index)));
  // Most peers cannot cancel a wait: a waiter that is not served in time waits until the conductor ends this process.
  await Promise.race([all, sleepUntil(stopAt + GRACE_MS)]);
  return { holds: [...holds], unservedSince: [...waitingSince.values()] };
}
