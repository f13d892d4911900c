import { expect, test } from 'vitest';
import type { Grant, LossReason } from '../src/backend/types.ts';
import { driftMargin, Hold, isLossReason } from '../src/tenure/hold.ts';

const NEVER = Number.POSITIVE_INFINITY;
const request = { resource: 'a', acquisitionId: 'id', mode: { kind: 'exclusive' }, ttlMs: 10_000 } as const;

/** A hold on a clock that the test sets. */
function holdAt(
  clock: { now: number },
  grant: Partial<Grant> = {},
  autoRenew = true,
  told: LossReason[] = [],
): Hold {
  const owner = {
    backendName: 'none',
    now: () => clock.now,
    holdLost: (_hold: Hold, reason: LossReason) => told.push(reason),
  };
  return new Hold(
    owner,
    { request, countedFrom: 0, ...grant },
    10_000,
    autoRenew,
    Number.POSITIVE_INFINITY,
    clock.now,
  );
}

test('a lease is valid until its ttl, counted from before its request was sent, less the drift margin', () => {
  const clock = { now: 700 };
  expect(driftMargin(10_000)).toBe(102);
  const hold = holdAt(clock, { countedFrom: 500 });
  expect(hold.deadline).toBe(500 + 10_000 - 102);
  clock.now = hold.deadline - 1;
  expect(hold.lost).toBeUndefined();
  clock.now = hold.deadline;
  expect(hold.lost).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('the signal, first read after a stall, has aborted; one read before it aborts when the lease is looked at', () => {
  const clock = { now: 0 };
  const late = holdAt(clock);
  const early = holdAt(clock);
  const { signal } = early;
  clock.now = 20_000;
  expect(late.signal.aborted).toBe(true);
  expect(signal.aborted).toBe(false);
  expect(early.signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('a hold is lost once, and the first reason stands', () => {
  const told: LossReason[] = [];
  const clock = { now: 0 };
  const hold = holdAt(clock, {}, true, told);
  hold.lose('taken-over');
  hold.lose('force-released');
  clock.now = 20_000;
  expect(hold.lost).toMatchObject({ reason: 'taken-over' });
  expect(told).toEqual(['taken-over']);
});

test('a released hold is not lost any more, neither by time nor by the store', () => {
  const told: LossReason[] = [];
  const clock = { now: 0 };
  const hold = holdAt(clock, {}, true, told);
  const { signal } = hold;
  hold.released = true;
  hold.lose('taken-over');
  clock.now = 20_000;
  expect(hold.lost).toBeUndefined();
  expect(signal.aborted).toBe(false);
  expect(told).toEqual([]);
});

test('a confirmed renewal moves the end and plans the next at a third', () => {
  const hold = holdAt({ now: 0 });
  const renewal = hold.renewalSent(10_000, 3_000, false);
  hold.renewed(renewal);
  expect(hold.deadline).toBe(3_000 + 10_000 - 102);
  expect(hold.renewAt).toBeCloseTo(3_000 + 10_000 / 3);
  expect(hold.renewFrom).toBeCloseTo(3_000 + 10_000 / 4);
  const manual = holdAt({ now: 0 }, {}, false);
  manual.renewed(manual.renewalSent(10_000, 3_000, true));
  expect([manual.renewAt, manual.renewFrom]).toEqual([NEVER, NEVER]);
});

test.each(['released', 'lost'])('the confirmation of a renewal does not revive a hold that was %s', (how) => {
  const hold = holdAt({ now: 0 });
  const before = hold.deadline;
  const renewal = hold.renewalSent(10_000, 3_000, false);
  if (how === 'released') hold.released = true;
  else hold.lose('expired');
  hold.renewed(renewal);
  expect(hold.deadline).toBe(before);
});

test('replies that overtake each other leave the end that the later renewal set', () => {
  const hold = holdAt({ now: 0 });
  const [first, second] = [hold.renewalSent(10_000, 3_000, false), hold.renewalSent(10_000, 4_000, false)];
  hold.renewed(second);
  hold.renewed(first);
  expect(hold.deadline).toBe(4_000 + 10_000 - 102);
});

test('a store that holds a renewed lease for less than was left is believed', () => {
  const hold = holdAt({ now: 0 });
  hold.renewed(hold.renewalSent(10_000, 1_000, false), 2_000);
  expect(hold.deadline).toBe(1_000 + 2_000 - 22);
  expect(hold.renewAt).toBeCloseTo(1_000 + 2_000 / 3);
});

test('a loss by time is unconfirmed while a renewal has no answer, and expired otherwise', () => {
  const clock = { now: 0 };
  const [answered, open] = [holdAt(clock), holdAt(clock)];
  answered.renewed(answered.renewalSent(10_000, 0, false));
  open.renewalSent(10_000, 0, false);
  clock.now = 20_000;
  expect(answered.lost).toMatchObject({ reason: 'expired' });
  expect(open.lost).toMatchObject({ reason: 'unconfirmed' });
});

test('a renewal is never planned for the next moment, however little is left', () => {
  const hold = holdAt({ now: 0 });
  for (const ms of [0, -50, 1]) {
    hold.renewIn(ms, 1_000);
    expect(hold.renewAt).toBe(1_005);
  }
});

test('reasons of a loss are told apart from anything else', () => {
  expect(['expired', 'session-lost', 'closed'].every(isLossReason)).toBe(true);
  expect(['toString', 'gone', '', undefined, null, {}].some(isLossReason)).toBe(false);
});

test('of renewals that overlap the shortest counts, whichever is answered first, and the next one puts it right', () => {
  for (const first of ['earlier', 'later']) {
    const hold = holdAt({ now: 0 }, {}, false);
    const earlier = hold.renewalSent(10_000, 1_000, false);
    const later = hold.renewalSent(600_000, 2_000, true);
    for (const renewal of first === 'earlier' ? [earlier, later] : [later, earlier]) hold.renewed(renewal);
    expect(hold.deadline).toBe(2_000 + 10_000 - 102);
    expect(hold.renewAt).toBeCloseTo(2_000 + 10_000 / 3);
    hold.renewed(hold.renewalSent(600_000, 5_000, false));
    expect(hold.deadline).toBe(5_000 + 600_000 - 6_002);
    expect(hold.renewAt).toBe(NEVER);
  }
});

test('a renewal that ended without a clear answer counts once: the store may carry it out late', () => {
  const hold = holdAt({ now: 0 });
  hold.renewalSent(10_000, 1_000, false).unclear = true;
  hold.renewed(hold.renewalSent(600_000, 2_000, true));
  expect(hold.deadline).toBe(2_000 + 10_000 - 102);
  hold.renewed(hold.renewalSent(600_000, 5_000, false));
  expect(hold.deadline).toBe(5_000 + 600_000 - 6_002);
});

test('a store that holds a lease for longer than its ttl is believed, and asked for no more renewals', () => {
  const hold = holdAt({ now: 0 }, {}, false);
  hold.renewed(hold.renewalSent(1_000, 500, true), 2_000);
  expect(hold.deadline).toBe(500 + 2_000 - 22);
  expect([hold.renewAt, hold.provisional]).toEqual([NEVER, false]);
});
