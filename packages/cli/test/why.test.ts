import type { Lock, LockManager } from '@locks/core';
import { OWN_LOCK, WAIT_NAMES } from '@locks/core/backend';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openStore, type Store } from '../src/open-store.ts';
import { locksHere } from './program.ts';
import { type StartedStore, startStore, TestRedis } from './started-stores.ts';

interface Answer {
  readonly name: string;
  readonly chain: readonly { readonly name: string; readonly label?: string; readonly waitsFor?: string }[];
  readonly isCircle: boolean;
}

describe.each(['redis', 'postgres', 'sqlite', 'file'] as const)('locks why, on %s', (name) => {
  let started: StartedStore;
  let store: Store;
  let locks: LockManager;
  beforeAll(async () => {
    started = await startStore(name);
    store = await openStore(started.url, undefined);
    ({ locks } = store);
  });
  afterAll(async () => {
    await store[Symbol.asyncDispose]();
    await started[Symbol.asyncDispose]();
  });

  const asked = async (lock: string): Promise<Answer> =>
    JSON.parse((await locksHere(started.url, 'why', lock, '--json')).stdout) as Answer;

  it('says that nobody holds a free lock, and of a held one who holds it and that this tells of no wait', async () => {
    expect(await locksHere(started.url, 'why', 'free')).toEqual({
      code: 0,
      stdout: 'nobody holds free\n',
      stderr: '',
    });
    expect(await asked('free')).toEqual({ name: 'free', chain: [], isCircle: false });
    await using _lease = await locks.lock('held').acquire({ label: 'worker' });
    const { code, stdout } = await locksHere(started.url, 'why', 'held');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^held is held by worker \([\w-]{20}\) for \d+\.\d s, \d+\.\d s left unless it is renewed; its holder tells of no wait\n$/,
    );
  });

  /** Takes a lock, and tells that its code waits for another one, until the end of the test. */
  const tell = async (lock: Lock, label: string, waitsFor?: string, mode = 'x'): Promise<void> => {
    const lease = await lock.acquire({ label });
    onTestFinished(() => lease.release());
    if (waitsFor === undefined) return;
    const edge = locks.lock(`${WAIT_NAMES}${lease.acquisitionId}`, { [OWN_LOCK]: true } as object);
    const told = await edge.acquire({ label: `1 000000000.${lease.acquisitionId} ${mode} ${waitsFor}` });
    onTestFinished(() => told.release());
  };

  it('says so where they are a circle', async () => {
    await tell(locks.lock('circle 1'), 'a', 'circle 2');
    await tell(locks.lock('circle 2'), 'b', 'circle 1');
    expect(await asked('circle 1')).toMatchObject({
      chain: [
        { label: 'a', waitsFor: 'circle 2' },
        { label: 'b', waitsFor: 'circle 1' },
      ],
      isCircle: true,
    });
    const { stdout } = await locksHere(started.url, 'why', 'circle 1');
    expect(stdout).toMatch(/\na circle: none of them goes on before one gives up\n$/);
  });

  it('says that it is none where another holder works', async () => {
    const room = locks.semaphore('room', 2);
    await tell(room, 'works');
    await tell(room, 'b', 'door');
    await tell(locks.lock('door'), 'd', 'room', 'p1/2');
    expect(await asked('room')).toMatchObject({
      chain: [
        { name: 'room', label: 'b', waitsFor: 'door' },
        { name: 'door', label: 'd', waitsFor: 'room' },
      ],
      isCircle: false,
    });
    const { stdout } = await locksHere(started.url, 'why', 'room');
    expect(stdout).toMatch(/\nwho holds that stands above, and it is no circle: [^\n]*\n$/);
  });

  it('says that it goes on where it is too long to follow, and names a lock that is free', async () => {
    for (let index = 1; index <= 17; index += 1)
      await tell(locks.lock(`long ${index}`), 'one of many', `long ${index + 1}`);
    const { stdout } = await locksHere(started.url, 'why', 'long 1');
    expect(stdout).toMatch(/^long 16 [^\n]*waits for long 17\nand so on\n$/mu);
    const end = await locksHere(started.url, 'why', 'long 17');
    expect(end.stdout).toMatch(/waits for long 18\nnobody holds long 18\n$/);
  });

  it('follows what long waits tell, from holder to holder', async () => {
    const end = new AbortController();
    const { signal } = end;
    await using _last = await locks.lock('r').acquire({ label: 'c' });
    const hold = locks
      .lock('q')
      .run(() => locks.lock('r').acquire({ signal, waitMs: 60_000 }), { label: 'b' })
      .catch(() => {});
    onTestFinished(async () => {
      end.abort();
      await hold;
    });
    const answer = await waitUntil(
      async () => {
        const told = await asked('q');
        return told.chain.length === 2 && told;
      },
      { what: 'the wait to be told' },
    );
    expect(answer).toMatchObject({
      name: 'q',
      chain: [
        { name: 'q', label: 'b', waitsFor: 'r' },
        { name: 'r', label: 'c' },
      ],
      isCircle: false,
    });
    const { stdout } = await locksHere(started.url, 'why', 'q');
    expect(stdout).toMatch(
      /^q is held by b .*; its holder waits for r\nr is held by c .*; its holder tells of no wait\n$/,
    );
    end.abort();
    await hold;
  });
});

describe('locks why, on a key of another program', () => {
  const redis = new TestRedis();

  it('says who holds it, and sends its value nowhere', async () => {
    await redis.client.set('lock::foreign', 'v'.repeat(600), 'PX', 60_000);
    expect(await locksHere(redis.url, 'why', 'foreign')).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^foreign is held by another program .*; its holder tells of no wait\n$/,
      ) as string,
      stderr: '',
    });
  });
});
