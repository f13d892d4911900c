import { expect, test, vi } from 'vitest';
import { CallContext } from '../../src/call/call-context.ts';
import { CallDeadlines } from '../../src/call/call-deadlines.ts';
import { CombinedClock } from '../../src/lifetime/clock.ts';
import { useFakeClock } from '../fixture.ts';

test('calls that end later than an earlier one need no timer of their own', () => {
  useFakeClock();
  const clock = new CombinedClock();
  const deadlines = new CallDeadlines(clock);
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const start = clock.now();
  const calls = [20, 30, 25].map((ms) => new CallContext(deadlines, start + ms));
  expect(setTimer).toHaveBeenCalledTimes(1);
  const earlier = new CallContext(deadlines, start + 10);
  vi.advanceTimersByTime(10);
  expect(earlier.interruption).toBe('deadline');
  vi.advanceTimersByTime(15);
  expect(calls.map((call) => call.interruption)).toEqual(['deadline', undefined, 'deadline']);
});

test('a call that gave up before it was sent is not sent', async () => {
  const clock = new CombinedClock();
  const context = new CallContext(new CallDeadlines(clock), clock.now() + 1_000, AbortSignal.abort());
  const send = vi.fn();
  await context.answerOf(send);
  expect(send).not.toHaveBeenCalled();
});
