import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds on the machine's monotonic clock, the same in all its processes. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Waits at least `ms`, and little more: a timer may fire a fraction of a millisecond early or late. */
export async function dwell(ms: number): Promise<void> {
  const end = machineNow() + ms;
  await delay(ms);
  while (machineNow() < end) await new Promise((resolve) => setImmediate(resolve));
}

export async function sleepUntil(at: number): Promise<void> {
  const left = at - machineNow();
  if (left > 2) await delay(left - 2);
  while (machineNow() < at) await new Promise((resolve) => setImmediate(resolve));
}
