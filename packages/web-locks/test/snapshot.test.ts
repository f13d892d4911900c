import type { LockMode, ResourceState } from '@locks/core';
import { describe, expect, it } from 'vitest';
import { lockInfo, type OwnView, snapshotOf } from '../src/snapshot.ts';

const modes: Record<string, LockMode> = { x: { kind: 'exclusive' }, s: { kind: 'shared' } };

/** `x1 s2` for an exclusive entry of client 1 and a shared one of client 2. */
function entries(text: string) {
  return text
    .split(' ')
    .filter((one) => one !== '')
    .map((one) => ({
      acquisitionId: one,
      mode: modes[one.charAt(0)] as LockMode,
      label: `${one.slice(1)}#7`,
    }));
}

function state(holders: string, waiters: string): ResourceState {
  return { name: 'a', holders: entries(holders), waiters: entries(waiters) };
}

const own: OwnView = { nameOf: (resource) => resource, isOver: () => false, isFifo: true, waiting: [] };

function shown(states: ResourceState[], view: Partial<OwnView> = {}): string {
  const { held, pending } = snapshotOf(states, { ...own, ...view });
  const list = (all: typeof held): string =>
    all.map(({ mode, clientId }) => `${mode.charAt(0) === 'e' ? 'x' : 's'}${clientId}`).join(' ');
  return `${list(held)} | ${list(pending)}`;
}

describe('snapshotOf', () => {
  it('shows holders and waiters', () => {
    expect(shown([state('x1', 'x2 s3')])).toBe('x1 | x2 s3');
  });

  it('shows waiters whose turn has come as holders, whether or not the store has notified them', () => {
    expect(shown([state('', 'x1 s2')])).toBe('x1 | s2');
    expect(shown([state('', 's1 s2 x3 s4')])).toBe('s1 s2 | x3 s4');
    expect(shown([state('s1', 's2 x3')])).toBe('s1 s2 | x3');
    expect(shown([state('s1', 'x2 s3')])).toBe('s1 | x2 s3');
  });

  it('guesses nobody to be the next where the store keeps no order', () => {
    expect(shown([state('', 'x1 x2')], { isFifo: false })).toBe(' | x1 x2');
  });

  it('hides what is over for the client, and serves those behind it', () => {
    const isOver = (label: string | undefined): boolean => label === '2#7';
    expect(shown([state('s1', 'x2 s3')], { isOver })).toBe('s1 s3 | ');
    expect(shown([state('x2', 's1 s3')], { isOver })).toBe('s1 s3 | ');
  });

  it("adds the client's own requests that the store does not show", () => {
    const waiting = [
      { label: '2#7', info: lockInfo('2', 'exclusive', 'a') },
      { label: '2#8', info: lockInfo('2', 'shared', 'a') },
    ];
    expect(shown([state('x1', 'x2')], { waiting })).toBe('x1 | x2 s2');
  });
});
