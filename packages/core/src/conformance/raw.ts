import assert from 'node:assert/strict';
import type { AcquireRequest, Call, Grant, LockBackend, LockMode } from '../backend/types.ts';
import { freshAcquisitionId } from '../acquire/acquisition-id.ts';
import type { Stage } from './stage.ts';

/** A call that is never given up, for cases that talk to a backend without core. */
export const openCall: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export const EXCLUSIVE: LockMode = { kind: 'exclusive' };
export const SHARED: LockMode = { kind: 'shared' };

/** What core would send for an exclusive acquire. */
export function exclusiveRequest(resource: string, ttlMs: number, label = 'raw'): AcquireRequest {
  return { ...requestOf(resource, EXCLUSIVE, ttlMs), label };
}

/** What core would send. */
export function requestOf(resource: string, mode: LockMode, ttlMs: number): AcquireRequest {
  return { resource, acquisitionId: freshAcquisitionId(), label: 'raw', mode, ttlMs };
}

/**
 * Takes a resource that must be free, without core: nothing renews it. An attempt that took most of the ttl may rightly
 * have given back what it got, and is made again.
 */
export async function grab(
  backend: LockBackend,
  resource: string,
  ttlMs: number,
  mode: LockMode = EXCLUSIVE,
): Promise<Grant> {
  for (;;) {
    const startedAt = performance.now();
    const attempt = await backend.attempt(requestOf(resource, mode, ttlMs), false, openCall);
    if (attempt.status === 'granted') return attempt.grant;
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs > ttlMs / 2, `${resource} is free, and an attempt answered ${attempt.status}`);
  }
}

/** The acquisition ids that hold a resource, as the store says. */
export async function holdersOf(backend: LockBackend, resource: string): Promise<string[]> {
  const { holders } = await backend.inspect(resource, openCall);
  return holders.map(({ acquisitionId }) => acquisitionId);
}

const PAUSE_MS = 10;

/** Repeats a call that rejects with what its backend says may be repeated, as core does. */
export async function answered<T>(stage: Stage, backend: LockBackend, send: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!backend.isRetryable(error)) throw error;
    }
    await stage.sleep(PAUSE_MS);
  }
}

const ROUNDS = 3;

/**
 * The release of a round is answered with `not-held`. `unknown` is right where a connection broke under it, and the command
 * was sent again: then the round is made again, from its start.
 */
export async function isNotHeld(round: () => ReturnType<LockBackend['release']>): Promise<void> {
  let answer = await round();
  for (let rounds = 1; answer === 'unknown' && rounds < ROUNDS; rounds += 1) answer = await round();
  assert.equal(answer, 'not-held');
}

/**
 * Another gets in after a hold that nothing renews, though it may wait for thirty seconds only. `hold` gives whether the
 * hold stood all the time: a pause of this process may outlast it, and then the round is made again.
 */
export async function endsByItself(
  stage: Stage,
  hold: (backend: LockBackend, name: string) => Promise<boolean>,
): Promise<void> {
  const { locks } = await stage.client({ waitMs: 30_000 });
  const backend = await stage.backend();
  let name = stage.name();
  while (!(await hold(backend, name))) name = stage.name();
  await (await locks.lock(name).acquire()).release();
}
