import { expect, test, vi } from 'vitest';
import { CallContext, dropped } from '../../src/call/call-context.ts';
import { CallDeadlines, NEVER } from '../../src/call/call-deadlines.ts';
import { CombinedClock } from '../../src/lifetime/clock.ts';
import { pass, stallLoop, useFakeClock } from '../fixture.ts';

function contextOf(
  deadlines: CallDeadlines,
  limitMs: number,
  { latest = Number.POSITIVE_INFINITY, signal }: { latest?: number; signal?: AbortSignal } = {},
): CallContext {
  const now = deadlines.clock.now();
  return new CallContext(deadlines, now + limitMs, signal, NEVER, latest, now);
}

test('calls that end later than an earlier one need no timer of their own', async () => {
  useFakeClock();
  const clock = new CombinedClock();
  const deadlines = new CallDeadlines(clock);
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const calls = [20, 30, 25].map((ms) => contextOf(deadlines, ms));
  expect(setTimer).toHaveBeenCalledTimes(1);
  const earlier = contextOf(deadlines, 10);
  await pass(10);
  expect(earlier.interruption).toBe('deadline');
  await pass(15);
  expect(calls.map((call) => call.interruption)).toEqual(['deadline', undefined, 'deadline']);
});

test('a call that is answered in the iteration of its deadline is not interrupted', async () => {
  useFakeClock();
  const clock = new CombinedClock();
  const call = contextOf(new CallDeadlines(clock), 10);
  const answer = call
    .answerOf(
      () => new Promise<string>((resolve) => setTimeout(() => setImmediate(resolve, 'answered'), 10)),
      dropped,
    )
    .finally(() => call.done());
  await pass(10);
  expect(await answer).toBe('answered');
  expect(call.interruption).toBeUndefined();
});

test('a backend that reads the deadline right after a stall, before any timer, is told of one that is to come', async () => {
  useFakeClock();
  const clock = new CombinedClock();
  const call = contextOf(new CallDeadlines(clock), 100);
  stallLoop(300);
  expect(call.deadline - call.now()).toBeGreaterThanOrEqual(50);
  await pass(60);
  expect(call.interruption).toBeUndefined();
  await pass(60);
  expect(call.interruption).toBe('deadline');
  expect(call.deadline).toBeLessThan(call.now());
});

test('a deadline that no stall moves is kept', async () => {
  useFakeClock();
  const clock = new CombinedClock();
  const latest = clock.now() + 200;
  const call = contextOf(new CallDeadlines(clock), 100, { latest });
  stallLoop(300);
  await pass(60);
  expect(call.interruption).toBe('deadline');
  expect(call.deadline).toBeLessThanOrEqual(latest);
});

test('a call that gave up before it was sent is not sent', async () => {
  const clock = new CombinedClock();
  const context = contextOf(new CallDeadlines(clock), 1_000, { signal: AbortSignal.abort() });
  const send = vi.fn();
  await context.answerOf(send, dropped);
  expect(send).not.toHaveBeenCalled();
});
