import { expect, test } from 'vitest';
import { SessionValidity } from '../src/session-validity.ts';

const TIMEOUT = 9_000;
const THIRD = TIMEOUT / 3;

/**
 * The worst case at the leader: it hears of a session only by the reports of the follower, half a tick (at most a
 * quarter of the timeout) late, and the follower freezes right after its last answer.
 */
function leaderEndsAt(heardAt: number, sendings: readonly number[]): number {
  const last = sendings.at(-1) as number;
  const reported = sendings.filter((sentAt) => sentAt <= last - TIMEOUT / 4);
  return (reported.at(-1) ?? heardAt) + TIMEOUT;
}

test('an answer proves the session for two thirds of its timeout, from the sending on', () => {
  const life = new SessionValidity(TIMEOUT, 0);
  expect(life.validUntil).toBe(Number.NEGATIVE_INFINITY);
  life.proven(THIRD, THIRD);
  life.proven(2 * THIRD, 2 * THIRD);
  expect(life.validUntil).toBeLessThanOrEqual(2 * THIRD + (2 * TIMEOUT) / 3);
  expect(life.validUntil).toBeGreaterThan(2 * THIRD + TIMEOUT / 2);
});

test('the validity never outlasts the session at the leader, whenever the answers come', () => {
  let seed = 42;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  for (let round = 0; round < 2_000; round += 1) {
    const life = new SessionValidity(TIMEOUT, 0);
    const sendings: number[] = [];
    let now = 0;
    for (let answers = 0; answers < 12; answers += 1) {
      now += random() < 0.5 ? random() * 20 : random() * THIRD * 1.5;
      if (sendings.length > 0 && now >= life.validUntil) break;
      sendings.push(now);
      life.proven(now, now);
      expect(life.validUntil, `${sendings.join()}`).toBeLessThan(leaderEndsAt(0, sendings));
    }
  }
});

test('what a network has held up counts as one sign of life, however far apart it was sent', () => {
  const life = new SessionValidity(TIMEOUT, 0);
  life.proven(1, 2);
  // Both reach the follower, and are answered, at one moment; then the follower freezes, before it reports them.
  const arrived = 0.65 * TIMEOUT;
  life.proven(THIRD, arrived);
  life.proven(0.6 * TIMEOUT, arrived);
  expect(life.validUntil).toBeLessThan(1 + TIMEOUT);
});

test('probes that are answered late, each a quarter of the timeout after the last answer, keep the session', () => {
  const latency = 0.15 * TIMEOUT;
  const life = new SessionValidity(TIMEOUT, 0);
  for (let sentAt = 1; sentAt < 20 * TIMEOUT; sentAt += latency + TIMEOUT / 4) {
    if (sentAt > TIMEOUT) expect(life.validUntil).toBeGreaterThan(sentAt + latency);
    life.proven(sentAt, sentAt + latency);
  }
});

test('a late answer to an earlier request does not shorten the validity', () => {
  const life = new SessionValidity(TIMEOUT, 0);
  life.proven(THIRD, THIRD);
  const { validUntil } = life;
  life.proven(10, THIRD);
  expect(life.validUntil).toBe(validUntil);
});

test('no answer proves a session that has ended', () => {
  const life = new SessionValidity(TIMEOUT, 0);
  life.end();
  life.proven(THIRD, THIRD);
  expect(life.validUntil).toBe(Number.NEGATIVE_INFINITY);
});
