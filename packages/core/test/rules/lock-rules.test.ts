import { describe, expect, it } from 'vitest';
import type { LockMode } from '../../src/backend/index.ts';
import {
  type HoldRecord,
  type LockRecord,
  LockRules,
  type RulesContext,
  type WaiterRecord,
} from '../../src/rules/index.ts';

const exclusive: LockMode = { kind: 'exclusive' };
const shared: LockMode = { kind: 'shared' };
const permit = (limit: number): LockMode => ({ kind: 'permit', limit, weight: 1 });
const ME: RulesContext = { client: 'me' };

function waiter(id: string, client = 'me', mode = exclusive): WaiterRecord {
  return { id, mode, label: undefined, client, ttl: 50, since: 1 };
}

function hold(id: string, more: Partial<HoldRecord> = {}): HoldRecord {
  const times = { since: 1, until: 100, span: undefined };
  return { id, mode: shared, label: undefined, token: 1, ...times, stolen: false, ...more };
}

function rulesOf(record: Partial<LockRecord>, context = ME, now = 10): LockRules {
  const rules = new LockRules({ token: 1, holds: [], waiters: [], ...record }, context);
  rules.expire(now);
  rules.serve();
  return rules;
}

const idsOf = (entries: readonly { readonly id: string }[]): string[] => entries.map(({ id }) => id);

describe('the end of a hold', () => {
  it('is counted from the commit of the step that grants or renews it', () => {
    const rules = rulesOf({});
    rules.attempt({ acquisitionId: 'a', mode: exclusive }, 50, false);
    rules.commit(20);
    expect(rules.holds).toMatchObject([{ id: 'a', since: 20, until: 70, span: undefined }]);
    rules.renew('a', 2, 30);
    expect(rules.nextEnd).toBe(Infinity);
    rules.commit(60);
    expect(rules.holds).toMatchObject([{ since: 20, until: 90 }]);
    expect(rules.attempt({ acquisitionId: 'a', mode: exclusive }, 50, false)).toMatchObject({ left: 80 });
  });

  it('lets in the next one, and is reported as such in the same step only', () => {
    const rules = rulesOf({ holds: [hold('a')], waiters: [waiter('b', 'me', shared), waiter('c')] }, ME, 100);
    expect(idsOf(rules.holds)).toEqual(['b']);
    expect(rules.renew('a', 1, 50)).toEqual({ status: 'lost', reason: 'expired' });
    rules.expire(101);
    expect(rules.renew('a', 1, 50)).toEqual({ status: 'lost', reason: 'force-released' });
    rules.release('b');
    expect(rules.renew('a', 1, 50)).toEqual({ status: 'lost', reason: 'taken-over' });
  });
});

describe('waiters of other clients', () => {
  const polled: RulesContext = { ...ME, serves: (client) => client === 'me' };
  const readers = [waiter('a', 'me', shared), waiter('b', 'you', shared), waiter('c', 'me', shared)];

  it('are granted their ttl where the steps may serve all clients', () => {
    const rules = rulesOf({ waiters: [waiter('a', 'you')] });
    expect(rules.handedOff).toMatchObject([{ id: 'a', span: 50 }]);
    rules.commit(20);
    expect(rules.holds).toMatchObject([{ until: 70 }]);
    expect(rules.attempt({ acquisitionId: 'a', mode: exclusive }, 50, true)).toMatchObject({ left: 60 });
  });

  it('find the resource free where the steps may not serve them, and nobody passes them', () => {
    const rules = rulesOf({ waiters: readers }, polled);
    expect(idsOf(rules.handedOff)).toEqual(['a']);
    rules.release('a');
    expect(rules.holds).toEqual([]);
    expect(rules.next).toMatchObject({ id: 'b' });
    const contended = { status: 'contended' };
    expect(rules.attempt({ acquisitionId: 'new', mode: shared }, 50, true)).toEqual(contended);
    expect(rules.attempt({ acquisitionId: 'c', mode: shared }, 50, true)).toEqual(contended);
    rules.abandon('b');
    expect(idsOf(rules.holds)).toEqual(['c', 'new']);
  });

  it('end with their client, and a hold that it was granted does not', () => {
    const holds = [hold('held')];
    const waiters = [waiter('b', 'dead'), waiter('c', 'alive', shared)];
    const rules = rulesOf({ holds, waiters }, { ...ME, isAlive: (client) => client !== 'dead' });
    expect(idsOf(rules.holds)).toEqual(['held', 'c']);
    expect(rules.waiting).toBe(0);
  });
});

it('a stolen hold is lost as taken over, and a hold with a later token is not', () => {
  const rules = rulesOf({ holds: [hold('a')] });
  rules.attempt({ acquisitionId: 's', mode: shared, steal: true }, 50, false);
  expect(rules.renew('a', 1, 50)).toEqual({ status: 'lost', reason: 'taken-over' });
  expect(rules.downgrade('a', 2)).toEqual({ status: 'lost', reason: 'force-released' });
});

it('a store without room refuses whoever would be granted or queued, and nobody else', () => {
  class Full extends LockRules {
    override hasRoomFor() {
      return false;
    }
  }
  const rules = new Full({ token: 1, holds: [hold('a')], waiters: [waiter('b')] }, ME);
  rules.expire(10);
  const contended = { status: 'contended' };
  expect(rules.attempt({ acquisitionId: 'new', mode: shared }, 50, true)).toEqual({
    status: 'full',
    reason: 'recordHasNoRoom',
  });
  expect(rules.attempt({ acquisitionId: 'new', mode: shared }, 50, false)).toEqual(contended);
  expect(rules.attempt({ acquisitionId: 'b', mode: exclusive }, 50, true)).toEqual(contended);
  expect(rules.changed).toBe(false);
});

it('another limit holds for those who hold and for those who wait', () => {
  const holds = [hold('a', { mode: permit(1) })];
  const rules = rulesOf({ holds, waiters: [waiter('b', 'me', permit(1)), waiter('c', 'me', permit(1))] });
  expect(rules.resize(2)).toBeUndefined();
  expect(idsOf(rules.holds)).toEqual(['a', 'b']);
  expect([...rules.holds, ...rules.waiters].map(({ mode }) => mode)).toEqual([
    permit(2),
    permit(2),
    permit(2),
  ]);
  expect(rules.conflictWith(permit(1))).toEqual(permit(2));
});

it('a queue of thousands keeps its order, whoever leaves, and no record of those who left', () => {
  const rules = rulesOf({ holds: [hold('a', { mode: exclusive })] });
  const expected = new Set<string>();
  for (let index = 0; index < 10_000; index += 1) {
    const acquisitionId = `w${index}`;
    rules.attempt({ acquisitionId, mode: exclusive }, 50, true);
    expected.add(acquisitionId);
    if (index % 3 === 0) continue;
    const gone = `w${index - (index % 2)}`;
    rules.abandon(gone);
    expected.delete(gone);
  }
  expect(idsOf(rules.waiters)).toEqual([...expected]);
  expect(rules.waiting).toBe(expected.size);
  for (const id of expected) {
    rules.handedOff.splice(0);
    rules.forceRelease(undefined);
    expect(rules.holdOf(id)).toBeDefined();
  }
  rules.handedOff.splice(0);
  rules.forceRelease(undefined);
  expect(rules.isIdle).toBe(true);
});

describe('a step that ends the holds of others', () => {
  // The resource is free: both waiters that may be served here are granted before the step.
  const waiters = [waiter('a', 'me', shared), waiter('b', 'me', shared), waiter('c')];

  it('a forced release ends none that is granted in the same decision: the waiter gets it afterwards', () => {
    const rules = rulesOf({ waiters });
    expect(idsOf(rules.handedOff)).toEqual(['a', 'b']);
    expect(rules.forceRelease(undefined)).toEqual([]);
    expect(idsOf(rules.holds)).toEqual(['a', 'b']);
    expect(rules.handedOff).toEqual(rules.holds);
    expect(idsOf(rules.waiters)).toEqual(['c']);
    expect(rules.forceRelease('a')).toEqual([]);
    expect(idsOf(rules.handedOff)).toEqual(['a', 'b']);
  });

  it('a steal leaves such a waiter its place in the queue, also where the same id attempts again', () => {
    const rules = rulesOf({ waiters });
    rules.attempt({ acquisitionId: 's', mode: exclusive, steal: true }, 50, true);
    expect(idsOf(rules.holds)).toEqual(['s']);
    expect(rules.handedOff).toEqual([]);
    rules.attempt({ acquisitionId: 'a', mode: shared }, 50, true);
    expect(idsOf(rules.waiters)).toEqual(['a', 'b', 'c']);
    expect(rules.waiters).toEqual(waiters);
  });

  it('a steal of another kind is refused, and the waiter is granted all the same', () => {
    const rules = rulesOf({ waiters });
    const stolen = rules.attempt({ acquisitionId: 's', mode: permit(2), steal: true }, 50, true);
    expect(stolen).toMatchObject({ status: 'conflict' });
    expect(idsOf(rules.handedOff)).toEqual(['a', 'b']);
  });

  it('a steal after a new limit leaves the waiter the new one', () => {
    const rules = rulesOf({ waiters: [waiter('a', 'me', permit(1)), waiter('b', 'me', permit(1))] });
    rules.resize(2);
    const stolen = rules.attempt({ acquisitionId: 's', mode: permit(1), steal: true }, 50, true);
    expect(stolen).toEqual({ status: 'conflict', with: permit(2) });
    rules.attempt({ acquisitionId: 's', mode: permit(2), steal: true }, 50, true);
    expect(idsOf(rules.holds)).toEqual(['s', 'a']);
    expect([...rules.holds, ...rules.waiters].map(({ mode }) => mode)).toEqual([
      permit(2),
      permit(2),
      permit(2),
    ]);
  });

  it('ends what was stored before, and what was handed off and taken from the list', () => {
    const rules = rulesOf({ holds: [hold('h')], waiters: [waiter('a', 'me', shared)] });
    rules.handedOff.splice(0);
    expect(idsOf(rules.forceRelease(undefined))).toEqual(['h', 'a']);
  });
});
