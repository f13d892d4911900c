import { expect, it } from 'vitest';
import { Draft } from '../src/draft.ts';
import type { Hold, Place } from '../src/lock-state.ts';

const mode = { kind: 'shared' } as const;

function hold(id: string, unclaimedBy?: string): Hold {
  const times = { since: 1, until: 100, span: undefined };
  return { id, mode, token: 1, ...times, ...(unclaimedBy !== undefined && { unclaimedBy }) };
}

function place(id: string): Place {
  return { id, mode: { kind: 'exclusive' }, client: 'me', ttl: 10, since: 1 };
}

it('clears what this process has forgotten, and never a hold that somebody may have been told of', () => {
  const holds = [hold('told'), hold('handed to us', 'me'), hold('handed to another', 'you')];
  const state = { version: 1, token: 1, holds, places: [place('waits')] };
  const moment = { now: 10, client: 'me', isAlive: () => true, isAwaited: () => false };
  const draft = new Draft(state, moment);
  for (const id of ['told', 'handed to another', 'unknown']) draft.clear(id);
  expect(draft.changed).toBe(false);
  draft.clear('handed to us');
  draft.clear('waits');
  expect(draft.changed).toBe(true);
  expect(draft.holds.map(({ id }) => id)).toEqual(['told', 'handed to another']);
  expect(draft.places).toEqual([]);
});
