import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { onTestFinished, vi } from 'vitest';
import type { LockBackend } from '../src/backend/types.ts';
import { Locks } from '../src/create-locks.ts';
import { isLockError, type LockErrorCode } from '../src/errors.ts';
import type { LockEvents } from '../src/events.ts';
import type { ManagerOptions } from '../src/options.ts';
import { processWide } from '../src/process-wide.ts';
import type { LeaseMonitor } from '../src/lifetime/lease-monitor.ts';

/** Timers, wall and monotonic clock all stand still until the test moves them. */
export function useFakeClock(): void {
  // For leases that earlier tests left, the clock jumps now: their loss is no event of this test, nor is their renewal.
  const monitors = processWide('monitors@1', () => new Set<LeaseMonitor>());
  for (const monitor of monitors) monitor.stop();
  monitors.clear();
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
}

/** Lets `ms` pass, with everything that is due on the way. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await settled();
}

/** Time passes as it does for a blocked event loop or a stopped process: clocks go on, no timer runs. */
export function stall(ms: number): void {
  const before = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => before + ms);
}

/** The event loop stands still for `ms`: every clock is ahead of the timers from here on, which are late by as much. */
export function stallLoop(ms: number): void {
  const { now } = performance;
  const before = (vi.isMockFunction(now) && now.getMockImplementation()) || now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => before() + ms);
}

/** Lets resolved promises reach the code that awaits them. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

export function locksOn(backend: LockBackend, options?: ManagerOptions): Locks {
  return new Locks(backend, options);
}

/** The messages of a channel while the test runs. */
export function listenTo<Name extends keyof LockEvents>(name: Name): LockEvents[Name][] {
  const messages: LockEvents[Name][] = [];
  const listener = (message: unknown): void => {
    messages.push(message as LockEvents[Name]);
  };
  subscribe(name, listener);
  onTestFinished(() => {
    unsubscribe(name, listener);
  });
  return messages;
}

/** The code with which something is refused at once. */
export function codeOf(work: () => unknown): LockErrorCode | 'nothing thrown' {
  try {
    work();
  } catch (error) {
    if (isLockError(error)) return error.code;
    throw error;
  }
  return 'nothing thrown';
}

/** The code with which a promise rejects. */
export async function rejectionOf(work: Promise<unknown>): Promise<LockErrorCode | 'fulfilled'> {
  try {
    await work;
  } catch (error) {
    if (isLockError(error)) return error.code;
    throw error;
  }
  return 'fulfilled';
}
