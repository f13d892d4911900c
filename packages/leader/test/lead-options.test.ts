import { createLocks, LockError, onLockEvent } from '@locks/core';
import { memoryBackend, memoryTestBackend } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { election, type Leadership, type LeaderInfo } from '../src/index.ts';
import { forEver, until, withCandidates } from './candidate.ts';

describe('an error of the work', () => {
  it('ends the campaign by default: the next one leads, and lead rejects with it', async () => {
    await withCandidates(async (add) => {
      const a = add('a');
      await until(() => expect(a.leads).toBe(true));
      const b = add('b');
      const error = new Error('the work failed');
      a.endWork(error);
      await a.over;
      expect(a.outcome).toEqual({ error });
      await until(() => expect(b.leads).toBe(true));
    });
  });

  it("is given to onError with whenWorkFails 'campaign', and the candidate comes back", async () => {
    await withCandidates(async (add) => {
      const errors: unknown[] = [];
      const a = add('a', { whenWorkFails: 'campaign', onError: (error) => void errors.push(error) });
      const error = new Error('the work failed');
      for (const turn of [1, 2, 3]) {
        await until(() => expect(a.led).toHaveLength(turn));
        await until(() => expect(a.leads).toBe(true));
        a.endWork(error);
      }
      await until(() => expect(a.led).toHaveLength(4));
      expect(errors).toEqual([error, error, error]);
    });
  });

  it('is one also after the signal aborted, unless it is the end itself', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory, { ttlMs: 2_000 });
    const error = new Error('the cleanup failed');
    const leading = election(locks, 'scheduler').lead(async ({ signal }) => {
      await forEver({ signal }).catch(() => {});
      throw error;
    });
    await until(async () => expect(await locks.isLocked('scheduler')).toBe(true));
    await new Promise((resolve) => setImmediate(resolve));
    memory.lose('scheduler');
    await expect(leading).rejects.toBe(error);
  });

  it('LOCK_LOST of another lock is an error of the work; that of a fenced write is the end of the leadership', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory, { ttlMs: 2_000 });
    const late = new LockError('LOCK_LOST', 'a newer token wrote', { reason: 'taken-over' });
    let began = 0;
    const leading = election(locks, 'scheduler').lead(
      async () => {
        began += 1;
        if (began === 1) throw late;
        await locks.lock('other').run(async ({ signal }) => {
          memory.lose('other');
          signal.throwIfAborted();
        });
      },
      { backoff: { firstMs: 0 } },
    );
    await expect(leading).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: 'other' });
    expect(began).toBe(2);
  });

  it('thrown by onError or onLeader ends the campaign with that error, after the work has settled', async () => {
    for (const option of ['onError', 'onLeader'] as const) {
      const locks = createLocks(memoryBackend());
      const thrown = new Error(`${option} failed`);
      let settled = false;
      const leading = election(locks, 'scheduler').lead(
        async ({ signal }) => {
          if (option === 'onError') throw new Error('the work failed');
          await forEver({ signal }).catch(() => {});
          settled = true;
        },
        {
          whenWorkFails: 'campaign',
          onError() {
            throw thrown;
          },
          ...(option === 'onLeader' && {
            onLeader(current: LeaderInfo | undefined) {
              if (current !== undefined) throw thrown;
            },
          }),
          pollMs: 10,
        },
      );
      await expect(leading).rejects.toBe(thrown);
      expect(settled).toBe(option === 'onLeader');
      expect(await locks.isLocked('scheduler')).toBe(false);
    }
  });
});

describe('the options', () => {
  it('ttl and label are those of the lease', async () => {
    const locks = createLocks(memoryBackend());
    const stop = new AbortController();
    await election(locks, 'scheduler').lead(
      async () => {
        const { holders } = await locks.inspect('scheduler');
        expect(holders).toMatchObject([{ label: 'http://10.0.0.7:8080' }]);
        expect(holders[0]?.expiresInMs).toBeLessThanOrEqual(5_000);
        stop.abort();
      },
      { signal: stop.signal, ttlMs: 5_000, label: 'http://10.0.0.7:8080' },
    );
  });

  it('onLeader is told who leads, also oneself, and once for each change', async () => {
    await withCandidates(async (add) => {
      const told: (string | undefined)[] = [];
      const a = add('a', { onLeader: (current) => void told.push(current?.label), pollMs: 10 });
      await until(() => expect(told.at(-1)).toBe('a'));
      const b = add('b');
      await until(async () => expect((await a.locks.inspect('scheduler')).waiters).toHaveLength(1));
      a.current?.resign();
      await until(() => expect(told.at(-1)).toBe('b'));
      expect(told.filter((label) => label !== undefined)).toEqual(['a', 'b']);
      expect(b.leads).toBe(true);
    });
  });

  it('are refused at once where they are wrong, and nothing is asked of the store', async () => {
    const memory = memoryTestBackend();
    const attempt = vi.spyOn(memory, 'attempt');
    const locks = createLocks(memory);
    const work = (): void => {};
    const wrong: [unknown, unknown][] = [
      [undefined, {}],
      [work, { ttlMs: 1 }],
      [work, { label: 'a\nb' }],
      [work, { backoff: { firstMs: 2_000, longestMs: 1_000 } }],
      [work, { backoff: { firstMs: -1 } }],
      [work, { backoff: 5 }],
      [work, { whenWorkFails: 'again' }],
      [work, { whenWorkFails: 'campaign' }],
      [work, { onLeader: 5 }],
      [work, { pollMs: 1 }],
      [work, { signal: {} }],
      [work, { polMs: 50 }],
    ];
    for (const [given, options] of wrong) {
      await expect(election(locks, 'a').lead(given as () => void, options as object)).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
    expect(attempt).not.toHaveBeenCalled();
  });
});

it('a release without an answer is reported by core, and does not end the campaign', async () => {
  const memory = memoryTestBackend();
  const locks = createLocks(memory, { ttlMs: 300 });
  const stop = new AbortController();
  const failures: unknown[] = [];
  const unsubscribe = onLockEvent('locks:release-failed', (event) => void failures.push(event));
  let repair = (): void => {};
  const terms: Leadership[] = [];
  const leading = election(locks, 'scheduler').lead(
    (leadership) => {
      terms.push(leadership);
      if (terms.length === 2) stop.abort();
      else repair = memory.fail();
    },
    { signal: stop.signal, backoff: { firstMs: 1 } },
  );
  await until(() => expect(failures).toHaveLength(1));
  repair();
  await leading;
  expect(terms).toHaveLength(2);
  unsubscribe();
});
