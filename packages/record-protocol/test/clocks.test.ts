import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Heartbeats } from '../src/heartbeats.ts';
import { presentMoment } from '../src/moment.ts';
import { createRecordBackend } from '../src/create-record-backend.ts';
import { Sightings } from '../src/sightings.ts';
import { StoreClock } from '../src/store-clock.ts';
import { call } from './fixture.ts';
import { LocalStore } from './local-store.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'], now: 1_790_000_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The machine sleeps: its wall clock goes on, and its monotonic one does not. */
function sleep(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

const SKEW_MS = 20;
const second = 1_000_000;

test('the end of a hold is behind the time of every server, also after the machine slept', () => {
  const clock = new StoreClock({ stepMs: 1, skewMs: SKEW_MS }, 'records');
  clock.learn(5_000, presentMoment());
  expect(clock.endOf(second)).toBeGreaterThanOrEqual((5_000 + SKEW_MS) * 1_000 + second);
  sleep(3_000);
  expect(clock.endOf(second)).toBeGreaterThanOrEqual((8_000 + SKEW_MS) * 1_000 + second);
  // What was asked before the sleep may have been answered before it.
  const askedAt = presentMoment();
  sleep(2_000);
  clock.learn(8_000, askedAt);
  expect(clock.endOf(second)).toBeGreaterThanOrEqual((10_000 + SKEW_MS) * 1_000 + second);
});

test('a wall clock that was set forward delays ends until the next answer', () => {
  const clock = new StoreClock({ stepMs: 1, skewMs: 0 }, 'records');
  clock.learn(5_000, presentMoment());
  sleep(3_600_000);
  expect(clock.endOf(0)).toBeGreaterThan(3_600_000_000);
  clock.learn(5_001, presentMoment());
  expect(clock.endOf(0)).toBeLessThanOrEqual(5_002_000);
});

test('a heartbeat that was read before a stall of the event loop tells of the time before it', () => {
  const clock = new StoreClock({ stepMs: 0, skewMs: 0 }, 'records');
  const heartbeats = new Heartbeats(3_000, clock);
  const record = (end: number) => ({
    version: end,
    value: Buffer.from(JSON.stringify({ beat: 1, end: end * 1_000 })),
  });
  clock.learn(5_000, presentMoment());
  const askedAt = performance.now();
  vi.advanceTimersByTime(10_000);
  clock.learn(15_000, presentMoment());
  heartbeats.see('living', record(8_000), askedAt);
  expect(heartbeats.has('living')).toBe(true);
  expect(heartbeats.isDue('living')).toBe(true);
  // Its silence counts from the answer on, and what ended before the question is over.
  heartbeats.see('living', record(8_000), askedAt + 3_000 - 1);
  expect(heartbeats.has('living')).toBe(true);
  heartbeats.see('dead', record(4_900), askedAt);
  expect(heartbeats.has('dead')).toBe(false);
  heartbeats.see('living', record(8_000), performance.now());
  expect(heartbeats.has('living')).toBe(false);
});

test('what others hold is counted by the monotonic clock, from the first sight of each renewal', () => {
  const sightings = new Sightings();
  const see = (mark: number, now: number): number =>
    sightings.see('a', new Map([['id', { mark }]]), now)('id');
  expect(see(1, 100)).toBe(100);
  sleep(5_000);
  expect(see(1, 200)).toBe(100);
  expect(see(2, 300)).toBe(300);
  expect(see(1, 400)).toBe(400);
});

test('what this process was granted counts from the sending of that write, by the clock that shows more', () => {
  const sightings = new Sightings();
  sightings.sends(7, presentMoment());
  vi.advanceTimersByTime(40);
  const see = (now: number): number => sightings.see('a', new Map([['id', { mark: 7 }]]), now)('id');
  expect(see(second)).toBe(second - 40_000);
  sightings.answered(7);
  sleep(100);
  expect(see(second)).toBe(second - 140_000);
});

test('a hold that is found again counts for less than it has left: the clock that measured what passed may be slow', async () => {
  const backend = createRecordBackend(new LocalStore());
  const wanted = { resource: 'a', acquisitionId: 'id', mode: { kind: 'exclusive' }, ttlMs: 10_000 } as const;
  await backend.attempt(wanted, false, call);
  vi.advanceTimersByTime(5_000);
  const again = await backend.attempt(wanted, false, call);
  expect(again).toMatchObject({
    status: 'granted',
    grant: { validForMs: expect.closeTo(5_000 - 5_000 / 99, 3) },
  });
  await backend.close();
});
