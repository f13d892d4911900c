import { createLocks } from '@locks/core';
import type { LockBackend, SlotStore, ResultStore } from '@locks/core/backend';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, granted, request } from '../participant.ts';
import type { RedisServer } from '../redis/redis-server.ts';
import { startRedis } from '../redis/start-redis.ts';

/** A client of an application, with everything that its library's adapter makes of it. */
export interface SharedClient extends AsyncDisposable {
  readonly backend: LockBackend;
  /** Sends a command over the client itself. */
  command(name: string, ...args: string[]): Promise<unknown>;
  readonly slots?: SlotStore | undefined;
  readonly results?: ResultStore | undefined;
}

const REFUSED = { code: 'LOCK_BACKEND', message: expect.stringContaining('open MULTI') };
const UNEXPECTED = { name: 'UnexpectedReplyError', message: expect.stringContaining('open MULTI') };

/** @param open - opens a client; its backend has the option `maxPollMs: 50` */
export function testOpenMulti(open: (server: RedisServer) => Promise<SharedClient>): void {
  describe('a client with an open MULTI', () => {
    let redis: RedisServer;

    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    it('fails every call at once, and leaves nothing behind', async () => {
      await using client = await open(redis);
      const { backend, slots, results } = client;
      const hasPermits = backend.capabilities.modes.includes('permit');
      const hasList = backend.capabilities.features.includes('list');
      const locks = createLocks(backend, { ttlMs: 60_000 });
      const free = locks.lock('free');
      const [held, alone] = await Promise.all([locks.lock('held').acquire(), locks.lock('alone').acquire()]);
      const kept = granted(await backend.attempt(request('kept'), false, call));
      const waiting = locks.lock('held').acquire({ waitMs: Infinity });
      waiting.catch(() => undefined);
      const calls: [what: string, call: () => Promise<unknown>][] = [
        ['acquire', () => free.acquire({ waitMs: Infinity })],
        ['tryAcquire', () => free.tryAcquire()],
        ['a wait', () => waiting],
        ['release of a lock that somebody waits for', () => held.release()],
        ['release', () => alone.release()],
        ['inspect', () => locks.inspect('kept')],
        ['forceRelease', () => locks.forceRelease('kept')],
        ['ping', () => locks.ping()],
      ];
      if (hasList) calls.push(['list', () => locks.list()[Symbol.asyncIterator]().next()]);
      if (hasPermits) {
        const [read, permit] = [
          await locks.readWriteLock('read').read.acquire(),
          locks.semaphore('permits', 2),
        ];
        const [one, two] = [locks.lock('one'), locks.lock('two')];
        const written = await locks.lock('written').acquire();
        calls.push(
          ['release of a share', () => read.release()],
          ['acquire of a permit', () => permit.acquire()],
          ['resize', () => permit.resize(3)],
          ['all', () => locks.all([one, two]).acquire()],
          ['downgrade', () => backend.downgrade?.(kept, call) ?? Promise.reject(new Error('no downgrade'))],
          ['release after a wait', () => written.release()],
        );
      }
      if (slots !== undefined) calls.push(['slots.read', () => slots.read('job')]);
      if (results !== undefined) {
        await results.set('word', 'QUEUED', 1n, 60_000);
        expect(await results.get('word')).toBe('QUEUED');
        calls.push(
          ['results.get', () => results.get('word')],
          ['results.set', () => results.set('word', 'x', 2n, 60_000)],
        );
      }
      await client.command('MULTI');
      for (const [what, refused] of calls) {
        await expect(refused(), what).rejects.toMatchObject(what === 'downgrade' ? UNEXPECTED : REFUSED);
      }
      expect(await backend.renew([{ grant: kept, ttlMs: 60_000 }], call)).toMatchObject([
        { status: 'unknown', error: UNEXPECTED },
      ]);
      await client.command('DISCARD');
      expect((await locks.inspect('kept')).holders).toHaveLength(1);
      await (await free.acquire({ waitMs: 5_000 })).release();
      await locks.close();
    });

    it('is freed of the lock that an EXEC takes after all', async () => {
      await using client = await open(redis);
      const locks = createLocks(client.backend, { ttlMs: 60_000 });
      await (await locks.lock('executed').acquire()).release();
      await client.command('MULTI');
      await expect(locks.lock('executed').acquire()).rejects.toMatchObject(REFUSED);
      // EXEC is answered by an error where a script in it is unknown to the server.
      await client.command('EXEC').catch(() => undefined);
      await (await locks.lock('executed').acquire({ waitMs: 10_000 })).release();
      await locks.close();
    });
  });
}
