import type { LockMode } from '@locks/core/backend';
import { describe, expect, test } from 'vitest';
import { encodeHold, encodeWaiter, endOf, type EntryEnd } from '../src/etcd-entry.ts';
import { type Reaction, reactionTo } from '../src/reaction-to.ts';
import type { WatchEvent } from '../src/watch-stream.ts';

const exclusive: LockMode = { kind: 'exclusive' };
const shared: LockMode = { kind: 'shared' };
const permit: LockMode = { kind: 'permit', limit: 2, weight: 1 };

const unknown: WatchEvent = { type: 'unknown' };
const ended = (was: EntryEnd): WatchEvent => ({ type: 'delete', revision: 9, was });
const written = (value: Buffer, version: string): WatchEvent => {
  const kv = { key: Buffer.from('locks//a/id'), create_revision: '7', mod_revision: '9', lease: '4' };
  return { type: 'put', revision: 9, kv: { ...kv, version, value } };
};
const queued = (mode: LockMode): WatchEvent => written(encodeWaiter({ mode, rank: 0 }), '1');
const granted = (mode: LockMode): WatchEvent => written(encodeHold({ mode, rank: 0 }, undefined), '2');

describe('what a waiter does', () => {
  const table: [what: string, WatchEvent, exclusive: Reaction, shared: Reaction, permit: Reaction][] = [
    ['when the hold ahead, which held alone, ended', ended('held alone'), 'claim as next', 'check', 'check'],
    ['when a hold ahead that others hold beside ended', ended('held with others'), 'claim', 'check', 'check'],
    ['when the waiter ahead left', ended('waited'), 'check', 'check', 'check'],
    ['when nobody knows what ended', ended('unknown'), 'claim', 'check', 'check'],
    ['when the watch has missed history', unknown, 'check', 'check', 'check'],
    ['when the waiter ahead was granted alone', granted(exclusive), 'wait on', 'wait on', 'check'],
    ['when the writer ahead became a reader', granted(shared), 'wait on', 'check', 'check'],
    ['when a permit ahead was granted, or has another limit', granted(permit), 'wait on', 'wait on', 'check'],
    ['when another permit queued', queued(permit), 'wait on', 'wait on', 'wait on'],
  ];

  test.for(table)('%s', ([, event, ...reactions]) => {
    expect([exclusive, shared, permit].map((mode) => reactionTo(event, mode, false))).toEqual(reactions);
  });

  test('when an entry ended that this process still counts as waiting: it may be the whole queue that is gone', () => {
    const whileWaiting = (was: EntryEnd): Reaction => reactionTo(ended(was), exclusive, true);
    expect(whileWaiting('unknown')).toBe('check');
    expect(whileWaiting('held with others')).toBe('check');
    expect(whileWaiting('waited')).toBe('check');
    // The hand-off within the process: its grant was written, and its answer is under way.
    expect(whileWaiting('held alone')).toBe('claim as next');
  });
});

test.for([
  [true, exclusive, 'held alone'],
  [true, shared, 'held with others'],
  [true, permit, 'held with others'],
  [false, exclusive, 'waited'],
  [false, shared, 'waited'],
  [false, permit, 'waited'],
] as const)('an entry (held: %s) in the mode %o that ends was one that %s', ([held, mode, end]) => {
  expect(endOf({ held, mode })).toBe(end);
});
