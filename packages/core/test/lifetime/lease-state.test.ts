import { expect, test } from 'vitest';
import type { Grant, LossReason } from '../../src/backend/types.ts';
import { endOf, LeaseState, isLossReason } from '../../src/lifetime/lease-state.ts';
import { Protocol } from '../../src/protocol.ts';
import { scriptedBackend } from '../scripted-backend.ts';

const NEVER = Number.POSITIVE_INFINITY;
const request = { resource: 'a', acquisitionId: 'id', mode: { kind: 'exclusive' }, ttlMs: 10_000 } as const;

/** A lease on a clock that the test sets. */
function leaseAt(
  clock: { now: number },
  grant: Partial<Grant> = {},
  autoRenew = true,
  losses: LossReason[] = [],
): LeaseState {
  const owner = {
    backendName: 'none',
    protocol: new Protocol(scriptedBackend(), { now: () => clock.now }),
    now: () => clock.now,
    blockedMs: () => 0,
    leaseLost: (_lease: LeaseState, reason: LossReason) => losses.push(reason),
  };
  const granted = { request, countedFrom: 0, ...grant };
  return new LeaseState(owner, granted, 10_000, autoRenew, Number.POSITIVE_INFINITY, clock.now, granted);
}

test('a lease is valid until its ttl, counted from before its request was sent, less the drift margin', () => {
  const clock = { now: 700 };
  expect(endOf(0, 10_000)).toBe(10_000 - 102);
  const lease = leaseAt(clock, { countedFrom: 500 });
  expect(lease.deadline).toBe(500 + 10_000 - 102);
  clock.now = lease.deadline - 1;
  expect(lease.lost).toBeUndefined();
  clock.now = lease.deadline;
  expect(lease.lost).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('the signal, first read after a stall, has aborted; one read before it aborts when the lease is read', () => {
  const clock = { now: 0 };
  const late = leaseAt(clock);
  const early = leaseAt(clock);
  const { signal } = early;
  clock.now = 20_000;
  expect(late.signal.aborted).toBe(true);
  expect(signal.aborted).toBe(false);
  expect(early.signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('a lease is lost once, and the first reason stands', () => {
  const losses: LossReason[] = [];
  const clock = { now: 0 };
  const lease = leaseAt(clock, {}, true, losses);
  lease.lose('taken-over');
  lease.lose('force-released');
  clock.now = 20_000;
  expect(lease.lost).toMatchObject({ reason: 'taken-over' });
  expect(losses).toEqual(['taken-over']);
});

test('a released lease is not lost any more, neither by time nor by the store', () => {
  const losses: LossReason[] = [];
  const clock = { now: 0 };
  const lease = leaseAt(clock, {}, true, losses);
  const { signal } = lease;
  lease.released = true;
  lease.lose('taken-over');
  clock.now = 20_000;
  expect(lease.lost).toBeUndefined();
  expect(signal.aborted).toBe(false);
  expect(losses).toEqual([]);
});

test('a confirmed renewal moves the end and plans the next at a third', () => {
  const lease = leaseAt({ now: 0 });
  const renewal = lease.renewalSent(10_000, 3_000, false);
  lease.renewed(renewal, undefined);
  expect(lease.deadline).toBe(3_000 + 10_000 - 102);
  expect(lease.renewAt).toBeCloseTo(3_000 + 10_000 / 3);
  expect(lease.renewFrom).toBeCloseTo(3_000 + 10_000 / 4);
  const manual = leaseAt({ now: 0 }, {}, false);
  manual.renewed(manual.renewalSent(10_000, 3_000, true), undefined);
  expect([manual.renewAt, manual.renewFrom]).toEqual([NEVER, NEVER]);
});

test.each(['released', 'lost'])(
  'the confirmation of a renewal does not revive a lease that was %s',
  (how) => {
    const lease = leaseAt({ now: 0 });
    const before = lease.deadline;
    const renewal = lease.renewalSent(10_000, 3_000, false);
    if (how === 'released') lease.released = true;
    else lease.lose('expired');
    lease.renewed(renewal, undefined);
    expect(lease.deadline).toBe(before);
  },
);

test('replies that overtake each other leave the end that the later renewal set', () => {
  const lease = leaseAt({ now: 0 });
  const [first, second] = [lease.renewalSent(10_000, 3_000, false), lease.renewalSent(10_000, 4_000, false)];
  lease.renewed(second, undefined);
  lease.renewed(first, undefined);
  expect(lease.deadline).toBe(4_000 + 10_000 - 102);
});

test('a store that holds a renewed lease for less than was left is believed', () => {
  const lease = leaseAt({ now: 0 });
  lease.renewed(lease.renewalSent(10_000, 1_000, false), 2_000);
  expect(lease.deadline).toBe(1_000 + 2_000 - 22);
  expect(lease.renewAt).toBeCloseTo(1_000 + 2_000 / 3);
});

test('a loss by time is unconfirmed while a renewal has no answer, and expired otherwise', () => {
  const clock = { now: 0 };
  const [answered, open] = [leaseAt(clock), leaseAt(clock)];
  answered.renewed(answered.renewalSent(10_000, 0, false), undefined);
  open.renewalSent(10_000, 0, false);
  clock.now = 20_000;
  expect(answered.lost).toMatchObject({ reason: 'expired' });
  expect(open.lost).toMatchObject({ reason: 'unconfirmed' });
});

test('a renewal is never planned for the next moment, however little is left', () => {
  const lease = leaseAt({ now: 0 });
  for (const ms of [0, -50, 1]) {
    lease.renewIn(ms, 1_000);
    expect(lease.renewAt).toBe(1_005);
  }
});

test('a reason of a loss is distinguished from any other value', () => {
  expect(['expired', 'session-lost', 'closed'].every(isLossReason)).toBe(true);
  expect(['toString', 'gone', '', undefined, null, {}].some(isLossReason)).toBe(false);
});

test('of renewals that overlap the shortest counts, whichever is answered first, and the next one puts it right', () => {
  for (const first of ['earlier', 'later']) {
    const lease = leaseAt({ now: 0 }, {}, false);
    const earlier = lease.renewalSent(10_000, 1_000, false);
    const later = lease.renewalSent(600_000, 2_000, true);
    for (const renewal of first === 'earlier' ? [earlier, later] : [later, earlier])
      lease.renewed(renewal, undefined);
    expect(lease.deadline).toBe(2_000 + 10_000 - 102);
    expect(lease.renewAt).toBeCloseTo(2_000 + 10_000 / 3);
    lease.renewed(lease.renewalSent(600_000, 5_000, false), undefined);
    expect(lease.deadline).toBe(5_000 + 600_000 - 6_002);
    expect(lease.renewAt).toBe(NEVER);
  }
});

test('a renewal that ended without a clear answer counts once: the store may carry it out late', () => {
  const lease = leaseAt({ now: 0 });
  lease.renewalSent(10_000, 1_000, false).unclear = true;
  lease.renewed(lease.renewalSent(600_000, 2_000, true), undefined);
  expect(lease.deadline).toBe(2_000 + 10_000 - 102);
  lease.renewed(lease.renewalSent(600_000, 5_000, false), undefined);
  expect(lease.deadline).toBe(5_000 + 600_000 - 6_002);
});

test('a store that holds a lease for longer than its ttl is believed, and asked for no more renewals', () => {
  const lease = leaseAt({ now: 0 }, {}, false);
  lease.renewed(lease.renewalSent(1_000, 500, true), 2_000);
  expect(lease.deadline).toBe(500 + 2_000 - 22);
  expect([lease.renewAt, lease.repeatsRenewal]).toEqual([NEVER, false]);
});
