import { expect, test, vi } from 'vitest';
import { currentCaller, runInside } from '../../src/scope/context.ts';
import { Scope } from '../../src/scope/scope.ts';
import { CombinedClock } from '../../src/lifetime/clock.ts';
import type { LeaseState } from '../../src/lifetime/lease-state.ts';
import { Timer } from '../../src/lifetime/timer.ts';
import { stallLoop, useFakeClock } from '../fixture.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** A timer that writes down when it fired, counted from its making. */
function recorded(next: (now: number) => number = () => NEVER): {
  timer: Timer;
  firedAt: number[];
  in: (ms: number) => number;
} {
  const clock = new CombinedClock();
  const start = clock.now();
  const firedAt: number[] = [];
  const timer = new Timer(clock, (now) => {
    firedAt.push(now - start);
    if (firedAt.length > 100) throw new Error('it fires without end');
    return next(now);
  });
  return { timer, firedAt, in: (ms) => start + ms };
}

test('a timer fires once, when it is due', () => {
  useFakeClock();
  const { timer, firedAt, in: due } = recorded();
  timer.arm(due(100));
  vi.advanceTimersByTime(99);
  expect(firedAt).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(firedAt).toEqual([100]);
});

test('arming it again replaces the time, and it says for when it is armed', () => {
  useFakeClock();
  const { timer, firedAt, in: due } = recorded();
  expect(timer.armedFor).toBe(NEVER);
  timer.arm(due(100));
  timer.arm(due(40));
  expect(timer.armedFor).toBe(due(40));
  vi.advanceTimersByTime(1_000);
  expect(firedAt).toEqual([40]);
  expect(timer.armedFor).toBe(NEVER);
});

test.each([
  [80, 200, 200],
  [400, 150, 501],
])(
  '%i ms for which a listener blocks the event loop make the next time no later, and are told',
  (ms, next, then) => {
    useFakeClock();
    const seen: (readonly [firedAt: number, dueSince: number])[] = [];
    const { timer, in: at } = recorded((now) => {
      seen.push([now - at(0), timer.dueSince - at(0)]);
      if (seen.length > 1) return NEVER;
      stallLoop(ms);
      return at(next);
    });
    timer.arm(at(100));
    vi.advanceTimersByTime(1_000);
    expect(seen).toEqual([
      [100, 100],
      [then, next],
    ]);
  },
);

test('it is due since the time at which it was to fire, also when it is armed again after a stall', () => {
  useFakeClock();
  const { timer, in: due } = recorded();
  expect(timer.dueSince).toBe(NEVER);
  timer.arm(due(100));
  stallLoop(150);
  timer.arm(due(50));
  expect(timer.dueSince).toBe(due(100));
  vi.advanceTimersByTime(1_000);
  expect(timer.dueSince).toBe(NEVER);
});

test('it fires again when its owner says', () => {
  useFakeClock();
  const { timer, firedAt, in: due } = recorded((now) => now + 30);
  timer.arm(due(10));
  vi.advanceTimersByTime(100);
  expect(firedAt).toEqual([10, 40, 70, 100]);
  timer.stop();
});

test('an earlier time asked for while it fires wins over the owner’s next', () => {
  useFakeClock();
  const {
    timer,
    firedAt,
    in: due,
  } = recorded((now) => {
    if (firedAt.length === 1) timer.arm(now + 5);
    return now + 50;
  });
  timer.arm(due(10));
  vi.advanceTimersByTime(60);
  expect(firedAt).toEqual([10, 15]);
  timer.stop();
});

test('a fraction of a millisecond is rounded up, so that it never fires before it is due', () => {
  useFakeClock();
  const { timer, firedAt, in: due } = recorded();
  timer.arm(due(10.2));
  vi.advanceTimersByTime(10);
  expect(firedAt).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(firedAt).toEqual([11]);
});

test('what was due long ago fires at once', () => {
  useFakeClock();
  const { timer, firedAt, in: due } = recorded();
  timer.arm(due(-1_000));
  vi.advanceTimersByTime(1);
  expect(firedAt).toEqual([1]);
});

test('a time beyond what setTimeout can take is reached in steps', () => {
  useFakeClock();
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const longest = 2 ** 31 - 1;
  const dueAt = { at: 0 };
  const { timer, firedAt, in: due } = recorded((now) => (now < dueAt.at ? dueAt.at : NEVER));
  dueAt.at = due(2.5 * longest);
  timer.arm(dueAt.at);
  vi.advanceTimersByTime(3 * longest);
  expect(firedAt).toEqual([longest, 2 * longest, Math.ceil(2.5 * longest)]);
  for (const [, delay] of setTimer.mock.calls) expect(delay).toBeLessThanOrEqual(longest);
});

test('what is due is not delayed by a machine that slept', async () => {
  useFakeClock();
  const clock = new CombinedClock();
  const firedAt: number[] = [];
  const timer = new Timer(clock, () => {
    firedAt.push(performance.now() - start);
    return NEVER;
  });
  const start = performance.now();
  timer.arm(clock.now() + 10_000);
  vi.setSystemTime(Date.now() + 9_000);
  clock.now();
  await new Promise(setImmediate);
  vi.advanceTimersByTime(999);
  expect(firedAt).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(firedAt).toEqual([1_000]);
});

test('what was over when the machine woke up fires at once', async () => {
  useFakeClock();
  const clock = new CombinedClock();
  let fired = 0;
  const timer = new Timer(clock, () => {
    fired += 1;
    return NEVER;
  });
  timer.arm(clock.now() + 10_000);
  vi.setSystemTime(Date.now() + 3_600_000);
  clock.now();
  // Not while the clock is read.
  expect(fired).toBe(0);
  await new Promise(setImmediate);
  expect(fired).toBe(1);
});

test('a stopped timer does not fire, and can be armed again', () => {
  useFakeClock();
  const { timer, firedAt, in: due } = recorded();
  timer.arm(due(10));
  timer.stop();
  vi.advanceTimersByTime(20);
  expect(firedAt).toEqual([]);
  timer.arm(due(50));
  vi.advanceTimersByTime(50);
  expect(firedAt).toEqual([50]);
});

test('it does not keep the process alive, first or re-armed', () => {
  useFakeClock();
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const { timer, in: due } = recorded((now) => now + 10);
  timer.arm(due(10));
  vi.advanceTimersByTime(35);
  const handles = setTimer.mock.results.map((result) => result.value as NodeJS.Timeout);
  expect(handles).toHaveLength(4);
  expect(handles.filter((handle) => handle.hasRef())).toEqual([]);
  timer.stop();
});

test('it fires outside of the scope that armed it', async () => {
  const hold = {} as LeaseState;
  const scope = new Scope(hold, undefined);
  const seen = await runInside(
    scope,
    () =>
      new Promise((resolve) => {
        const timer = new Timer(new CombinedClock(), () => {
          resolve(currentCaller().runsInside(scope));
          return NEVER;
        });
        expect(currentCaller().runsInside(scope)).toBe(true);
        timer.arm(0);
        setTimeout(() => {}, 50);
      }),
  );
  expect(seen).toBe(false);
});
