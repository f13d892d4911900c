import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { election } from '../src/index.ts';

const locks = createLocks(memoryBackend());
const work = (): void => {};

describe('election', () => {
  it('gives functions that work on their own, for the name that it was given', async () => {
    const { lead, leader, name } = election(locks, 'scheduler');
    expect(name).toBe('scheduler');
    const stop = new AbortController();
    const led: unknown[] = [];
    await lead(
      async ({ acquisitionId, fencingToken }) => {
        expect(await leader()).toMatchObject({ acquisitionId, fencingToken });
        led.push(acquisitionId);
        stop.abort();
      },
      { signal: stop.signal },
    );
    expect(led).toHaveLength(1);
  });

  it.each<[what: string, call: () => unknown, shows: string]>([
    ['no name', () => (election as (...args: unknown[]) => unknown)(locks), 'election(locks, name)'],
    ['the name first', () => election('scheduler' as never, locks as never), 'election(locks, name)'],
    ['no manager', () => election(undefined as never, 'scheduler'), 'election(locks, name)'],
    ['a backend', () => election(memoryBackend() as never, 'scheduler'), 'election(locks, name)'],
    ['an empty name', () => election(locks, ''), 'A lock name must be'],
    ['a lone surrogate', () => election(locks, '\ud800'), 'lone surrogate'],
  ])('refuses %s at once', (_, call, shows) => {
    expect(call).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT', message: expect.stringContaining(shows) }),
    );
  });

  it.each<[what: string, ...given: unknown[]]>([
    ['no work'],
    ['the options first', { ttlMs: 1_000 }, work],
    ['the name, as of old', 'scheduler', work, { ttlMs: 1_000 }],
  ])('lead refuses %s, and shows the right call', async (_, ...given) => {
    const lead = election(locks, 'scheduler').lead as (...args: unknown[]) => Promise<void>;
    await expect(lead(...given)).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
      message: expect.stringContaining('lead(work, options)'),
    });
  });

  it('refuses a manager that is closed', async () => {
    const closed = createLocks(memoryBackend());
    const { watch } = election(closed, 'scheduler');
    await closed.close();
    expect(() => election(closed, 'scheduler')).toThrow(expect.objectContaining({ code: 'LOCK_CLOSED' }));
    await expect(watch()[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });
});
