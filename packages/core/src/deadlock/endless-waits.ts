import type { ResourceState } from '../backend/types.ts';
import type { ToldWait } from './told-wait.ts';
import { type AwaitedLock, deadlocked, type WaitNode } from './wait-graph.ts';

/**
 * The ids of the waits that never end unless one of them gives up, in one reading of a store. A hold that tells of no wait is taken to end,
 * and a lock that was not read to be free: so each of these waits is in a circle, or behind one.
 *
 * @param waitsOf - the waits that a hold tells of
 */
export function endlessWaits(
  states: Iterable<Pick<ResourceState, 'name' | 'holders'>>,
  waitsOf: (acquisitionId: string) => readonly ToldWait[],
): ReadonlySet<string> {
  const locks = new Map<string, AwaitedLock>();
  const waits = new Map<string, WaitNode>();
  const lockOf = (name: string): AwaitedLock => {
    const lock = locks.get(name) ?? { name, holders: [] };
    locks.set(name, lock);
    return lock;
  };
  // Several holds tell of one wait where it is inside of all of them.
  const nodeOf = ({ id, mode, name }: ToldWait): WaitNode => {
    const wait = waits.get(id) ?? { id, mode, lock: lockOf(name) };
    waits.set(id, wait);
    return wait;
  };
  for (const { name, holders } of states) {
    const lock = lockOf(name);
    for (const { acquisitionId, mode, label } of holders)
      lock.holders.push({ lock, mode, label, waits: waitsOf(acquisitionId).map(nodeOf) });
  }
  return new Set([...deadlocked(waits.values())].map(({ id }) => id));
}
