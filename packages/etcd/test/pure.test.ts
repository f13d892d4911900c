import type { LockMode } from '@locks/core/backend';
import { describe, expect, test } from 'vitest';
import {
  decodeEntry,
  reencode,
  encodeHold,
  encodeWaiter,
  type EtcdEntry,
  permitTag,
} from '../src/etcd-entry.ts';
import type { Acquisition } from '../src/acquisition.ts';
import { isFromCurrentLeader } from '../src/lease-validity.ts';
import { Keys } from '../src/keys.ts';
import { conflictWith, inQueueOrder, QueueTurns, turnOf } from '../src/queue-turns.ts';
import { claimConditions } from '../src/txn-branches.ts';

const exclusive: LockMode = { kind: 'exclusive' };
const shared: LockMode = { kind: 'shared' };
const permit = (limit: number, weight = 1): LockMode => ({ kind: 'permit', limit, weight });

function entry(createRevision: number, held: boolean, mode: LockMode): EtcdEntry {
  return {
    key: Buffer.from(`k/${createRevision}`),
    acquisitionId: `id${createRevision}`,
    held,
    mode,
    foreign: false,
    rank: 0,
    token: BigInt(createRevision),
    createRevision,
    modRevision: createRevision,
    lease: '1',
    at: 0,
  };
}

/** Without a position it is the turn of a newcomer. */
function free(unordered: EtcdEntry[], mode: LockMode, position?: number): boolean {
  const entries = inQueueOrder(unordered);
  const turn =
    position === undefined ? new QueueTurns(entries).ofNewcomer(mode) : turnOf(entries, mode, position);
  return turn.status === 'free';
}

test('permits are claimed as the read has found them that saw their turn, whatever a later read has found', () => {
  const key = Buffer.from('k/1');
  const position = { createRevision: 1, modRevision: 9, rank: 0, mode: permit(2) };
  const range = new Keys('locks/').rangeOf('a');
  const waiting: Partial<Acquisition> = {
    key,
    range,
    request: { resource: 'a', acquisitionId: 'id', mode: permit(2), ttlMs: 1_000 },
  };
  const acquisition = Object.assign(Object.create(null) as Acquisition, waiting, { position });
  expect(claimConditions(acquisition, { type: 'free', asOf: 5 })).toEqual([
    { key, target: 'Mod', result: 'Equal', mod_revision: 5 },
  ]);
});

describe('keys', () => {
  const keys = new Keys('locks/');
  const nasty = [
    'a',
    'A',
    'a/b',
    'a%2Fb',
    'a%',
    '%',
    '/',
    '//',
    ' ',
    '\n',
    '\0',
    'a\0',
    'é',
    'e\u0301',
    '😀',
    'a ',
    'x'.repeat(512),
  ];

  test('distinct names never collide, and come back as they were', () => {
    const all = nasty.map((name) => keys.of(name, 'id').toString('hex'));
    expect(new Set(all).size).toBe(nasty.length);
    for (const name of nasty) {
      expect(keys.parse(keys.of(name, 'id'))).toEqual({ resource: name, acquisitionId: 'id' });
    }
  });

  test('the range of a name has its keys, and those of no other name', () => {
    for (const name of nasty) {
      const { key, range_end } = keys.rangeOf(name);
      for (const other of nasty) {
        const of = keys.of(other, 'id');
        expect(key.compare(of) <= 0 && of.compare(range_end) < 0).toBe(name === other);
      }
    }
  });

  test('the range of a prefix has the names that start with it, and sessions are no names', () => {
    for (const prefix of ['', 'a', 'a/', '%', '/']) {
      const { key, range_end } = keys.rangeOfNames(prefix);
      for (const name of nasty) {
        const of = keys.of(name, 'id');
        expect(key.compare(of) <= 0 && of.compare(range_end) < 0).toBe(name.startsWith(prefix));
      }
    }
    expect(keys.parse(keys.session('s'))).toBeUndefined();
  });
});

describe('entries', () => {
  test.for([exclusive, shared, permit(5, 3)])('a hold and a waiter of %o come back as they were', (mode) => {
    const kv = {
      key: Buffer.from('locks//a/id'),
      create_revision: '7',
      mod_revision: '9',
      version: '1',
      lease: '4',
    };
    const hold = decodeEntry({ ...kv, value: encodeHold({ mode, label: 'me', rank: 0 }, undefined) });
    expect(hold).toMatchObject({
      acquisitionId: 'id',
      held: true,
      mode,
      label: 'me',
      token: 9n * 128n,
      createRevision: 7,
    });
    const waiter = decodeEntry({ ...kv, value: encodeWaiter({ mode, rank: 0 }) });
    expect(waiter).toMatchObject({ held: false, mode });
    expect(decodeEntry({ ...kv, mod_revision: '20', value: reencode(hold, mode) }).token).toBe(9n * 128n);
    // Holds that one transaction granted have tokens of their own, below those of the next revision.
    const ranked = decodeEntry({ ...kv, value: encodeHold({ mode, rank: 127 }, undefined) });
    expect(ranked.token).toBe(10n * 128n - 1n);
  });

  test('a foreign value counts as an exclusive hold', () => {
    const kv = {
      key: Buffer.from('locks//a/id'),
      create_revision: '7',
      mod_revision: '9',
      version: '1',
      lease: '0',
    };
    expect(decodeEntry({ ...kv, value: Buffer.from('?') })).toMatchObject({ held: true, mode: exclusive });
  });

  test('values sort as the conditions need it', () => {
    const held = (mode: LockMode) => encodeHold({ mode, rank: 0 }, undefined).toString();
    const waits = (mode: LockMode) => encodeWaiter({ mode, rank: 0 }).toString();
    const [e, s, we, ws] = [held(exclusive), held(shared), waits(exclusive), waits(shared)];
    expect([e, s, we, ws].toSorted()).toEqual([e, s, we, ws]);
    for (const value of [held(permit(5)), waits(permit(5))]) {
      expect(value > permitTag(5) && value < `${permitTag(5)}z`).toBe(true);
      expect(value > permitTag(50) || value > `${permitTag(4)}z`).toBe(true);
      expect(value > permitTag(6)).toBe(false);
      expect(value > 'r').toBe(false);
    }
  });
});

describe('turns', () => {
  test('holders come before waiters, however late they came', () => {
    const stolen = entry(9, true, exclusive);
    expect(
      inQueueOrder([entry(3, false, exclusive), stolen, entry(2, false, shared)]).map(
        (each) => each.createRevision,
      ),
    ).toEqual([9, 2, 3]);
    expect(free([stolen], exclusive, 3)).toBe(false);
    expect(free([stolen], shared, 3)).toBe(false);
  });

  test('a writer goes alone, readers go together, and nobody overtakes', () => {
    expect(free([], exclusive)).toBe(true);
    expect(free([entry(1, true, shared)], shared)).toBe(true);
    expect(free([entry(1, true, shared)], exclusive, 2)).toBe(false);
    expect(free([entry(1, true, shared), entry(2, false, exclusive)], shared, 3)).toBe(false);
    expect(free([entry(1, true, shared), entry(2, false, exclusive)], shared)).toBe(false);
    expect(free([entry(1, true, shared), entry(2, false, shared)], shared, 3)).toBe(true);
    expect(free([entry(1, true, shared), entry(2, false, shared)], shared)).toBe(false);
    expect(free([entry(5, false, exclusive)], exclusive, 2)).toBe(true);
  });

  test('the weights of holders and of waiters ahead count', () => {
    expect(free([entry(1, true, permit(5, 3))], permit(5, 2))).toBe(true);
    expect(free([entry(1, true, permit(5, 3))], permit(5, 3), 2)).toBe(false);
    expect(free([entry(1, true, permit(5, 3)), entry(2, false, permit(5, 1))], permit(5, 1), 3)).toBe(true);
    expect(free([entry(1, true, permit(5, 3)), entry(2, false, permit(5, 3))], permit(5, 1), 3)).toBe(false);
    expect(free([entry(1, true, permit(5, 1)), entry(2, false, permit(5, 1))], permit(5, 1))).toBe(false);
    // After its limit was lowered, with nobody ahead.
    expect(free([], permit(2, 3), 1)).toBe(false);
  });

  test('different limits and different families of modes are a conflict', () => {
    expect(conflictWith([entry(1, true, permit(5))], permit(5))).toBeUndefined();
    expect(conflictWith([entry(1, true, permit(5))], permit(6))?.with).toEqual(permit(5));
    expect(conflictWith([entry(1, true, shared)], permit(6))?.with).toEqual(shared);
    expect(conflictWith([entry(1, true, permit(5))], exclusive)?.with).toEqual(permit(5));
    expect(conflictWith([entry(1, true, shared)], exclusive)).toBeUndefined();
  });
});

test('a keep-alive that an earlier leader answered does not count', () => {
  expect(isFromCurrentLeader({ raftTerm: 3 }, 3)).toBe(true);
  expect(isFromCurrentLeader({ raftTerm: 4 }, 3)).toBe(true);
  expect(isFromCurrentLeader({ raftTerm: 2 }, 3)).toBe(false);
});
