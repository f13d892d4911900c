import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import { expect, it } from 'vitest';
import { QueueCheck } from '../../src/checks/queue-check.ts';
import { World } from '../../src/kernel/world.ts';

const mode = { kind: 'exclusive' } as const;

function hold(id: string, token: number): HoldRecord {
  return { id, mode, label: id, since: 0, token, until: 1_100, span: undefined, stolen: false };
}

function waiter(id: string, since = 0): WaiterRecord {
  return { id, mode, label: id, client: 'two', ttl: 100, since };
}

it('one write may end a hold by force, and queue its waiter again behind another', () => {
  const judged = (hasOperator: boolean): string[] => {
    const world = new World(1, false);
    const check = new QueueCheck(world, 'r0', { isCombined: true, hasOperator });
    check.stepTaken([hold('a', 1)], [waiter('b')], []);
    check.stepTaken([hold('a', 1)], [waiter('b'), waiter('c')], []);
    // a leaves, b is granted the lock, loses it by force, and comes again.
    check.stepTaken([hold('c', 3)], [waiter('b', 1_050)], []);
    return world.violations.map(({ clause }) => clause);
  };
  expect(judged(true)).toEqual([]);
  expect(judged(false)).toEqual(['§7.1']);
});
