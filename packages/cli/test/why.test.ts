import type { LockManager } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openStore, type Store } from '../src/open-store.ts';
import { locksHere } from './program.ts';
import { type StartedStore, startStore } from './started-stores.ts';

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
