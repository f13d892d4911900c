import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isDisturbed, watchMachine } from '../checks/machine.ts';

test('a process that was kept from running for 300 ms was disturbed', async () => {
  const endWatch = watchMachine();
  await sleep(30);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  await sleep(30);
  const disturbance = endWatch();
  expect(disturbance.stalledMs).toBeGreaterThanOrEqual(270);
  expect(isDisturbed(disturbance)).toBe(true);
});

test('a machine is disturbed by a long stall or by a host that takes a tenth away, and by nothing less', () => {
  expect(isDisturbed({ stalledMs: 249, stolen: 0.09 })).toBe(false);
  expect(isDisturbed({ stalledMs: 250, stolen: 0 })).toBe(true);
  expect(isDisturbed({ stalledMs: 0, stolen: 0.1 })).toBe(true);
});
