import { expect, test, vi } from 'vitest';
import { CombinedClock } from '../../src/lifetime/clock.ts';
import { locksOn, pass, useFakeClock } from '../fixture.ts';
import { scriptedBackend } from '../scripted-backend.ts';

/** Sets the wall clock alone. */
function setWallBy(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

test('time goes on as the monotonic clock does while both clocks agree', () => {
  useFakeClock();
  const clock = new CombinedClock();
  const start = clock.now();
  vi.advanceTimersByTime(12_345);
  expect(clock.now() - start).toBe(12_345);
});

test('a wall clock that is set forward adds what it gained, for good', () => {
  useFakeClock();
  const clock = new CombinedClock();
  const start = clock.now();
  setWallBy(60_000);
  expect(clock.now() - start).toBe(60_000);
  vi.advanceTimersByTime(1_000);
  expect(clock.now() - start).toBe(61_000);
});

test('a stall between the readings of the two clocks counts once', () => {
  useFakeClock();
  const clock = new CombinedClock();
  const start = clock.now();
  const readWall = Date.now;
  vi.spyOn(Date, 'now').mockImplementationOnce(() => {
    vi.advanceTimersByTime(1_300);
    return readWall();
  });
  expect(clock.now() - start).toBe(1_300);
  vi.advanceTimersByTime(500);
  expect(clock.now() - start).toBe(1_800);
});

test('a wall clock that is set back does nothing', () => {
  useFakeClock();
  const clock = new CombinedClock();
  const start = clock.now();
  vi.advanceTimersByTime(500);
  setWallBy(-3_600_000);
  expect(clock.now() - start).toBe(500);
  vi.advanceTimersByTime(500);
  expect(clock.now() - start).toBe(1_000);
});

test('every jump forward adds, also after a jump back', () => {
  useFakeClock();
  const clock = new CombinedClock();
  const start = clock.now();
  for (const jump of [10_000, -30_000, 10_000, 10_000, -5_000]) {
    setWallBy(jump);
    clock.now();
  }
  expect(clock.now() - start).toBe(30_000);
});

test('time never goes back, whatever the wall clock does', () => {
  useFakeClock();
  const clock = new CombinedClock();
  let last = clock.now();
  for (const jump of [5_000, -1, -60_000, 3, 60_000, -8, 0]) {
    setWallBy(jump);
    vi.advanceTimersByTime(1);
    const now = clock.now();
    expect(now).toBeGreaterThan(last);
    last = now;
  }
});

test('the rounding of the two clocks does not add up over many reads', () => {
  useFakeClock();
  let monotonic = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => monotonic);
  const wallStart = Date.now();
  // Whole milliseconds, read a moment after the monotonic clock.
  vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(wallStart + monotonic + Math.random() * 2));
  const clock = new CombinedClock();
  const start = clock.now();
  for (let read = 0; read < 200_000; read += 1) {
    monotonic += 0.37;
    clock.now();
  }
  expect(clock.now() - start).toBeCloseTo(monotonic - 1_000, 6);
});

test('a wall clock that runs a little fast is followed within a few milliseconds', () => {
  useFakeClock();
  let monotonic = 0;
  const wallStart = Date.now();
  vi.spyOn(performance, 'now').mockImplementation(() => monotonic);
  vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(wallStart + monotonic * 1.0005));
  const clock = new CombinedClock();
  const start = clock.now();
  for (let second = 0; second < 3_600; second += 1) {
    monotonic += 1_000;
    clock.now();
  }
  const elapsed = clock.now() - start;
  expect(elapsed).toBeGreaterThan(3_600_000 * 1.0005 - 8);
  expect(elapsed).toBeLessThan(3_600_000 * 1.0005 + 8);
});

test('a machine that sleeps past the end of a lease wakes up to a lost lease', async () => {
  useFakeClock();
  const lease = await locksOn(scriptedBackend(), { ttlMs: 30_000 }).lock('a').acquire();
  await pass(1_000);
  // The monotonic clock stood still, the wall clock did not.
  setWallBy(10 * 60_000);
  expect(lease.validForMs).toBe(0);
  expect(lease.signal.aborted).toBe(true);
  expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('a machine that sleeps less than the lease has left loses nothing', async () => {
  useFakeClock();
  const lease = await locksOn(scriptedBackend(), { ttlMs: 30_000 }).lock('a').acquire();
  const before = lease.validForMs;
  setWallBy(5_000);
  expect(lease.validForMs).toBe(before - 5_000);
  await pass(30_000);
  expect(lease.signal.aborted).toBe(false);
});
