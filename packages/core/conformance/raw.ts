import assert from 'node:assert/strict';
import type { AcquireRequest, Call, Grant, LockBackend, LockMode } from '../src/backend/types.ts';
import { freshAcquisitionId } from '../src/acquire/acquisition-id.ts';
import type { CaseContext } from './case-context.ts';

/** A call without deadline or abort, for cases that call a backend without core. */
export const openCall: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export const EXCLUSIVE: LockMode = { kind: 'exclusive' };
export const SHARED: LockMode = { kind: 'shared' };

/** The request that core would send for an exclusive acquire. */
export function exclusiveRequest(resource: string, ttlMs: number, label = 'raw'): AcquireRequest {
  return { ...requestOf(resource, EXCLUSIVE, ttlMs), label };
}

/** The request that core would send. */
export function requestOf(resource: string, mode: LockMode, ttlMs: number): AcquireRequest {
  return { resource, acquisitionId: freshAcquisitionId(), label: 'raw', mode, ttlMs };
}

/**
 * Takes a free resource without core: nothing renews the hold. An attempt that took most of the ttl may have returned its
 * grant for a good reason, and is repeated.
 */
export async function grab(
  backend: LockBackend,
  resource: string,
  ttlMs: number,
  mode: LockMode = EXCLUSIVE,
  enqueue = false,
): Promise<Grant> {
  for (;;) {
    const startedAt = performance.now();
    const attempt = await backend.attempt(requestOf(resource, mode, ttlMs), enqueue, openCall);
    if (attempt.status === 'granted') return attempt.grant;
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs > ttlMs / 2, `${resource} is free, and an attempt answered ${attempt.status}`);
  }
}

/** The acquisition ids that hold a resource, according to the store. */
export async function holdersOf(backend: LockBackend, resource: string): Promise<string[]> {
  const { holders } = await backend.inspect(resource, openCall);
  return holders.map(({ acquisitionId }) => acquisitionId);
}

const PAUSE_MS = 10;

/** Repeats a call while it rejects with an error that its backend calls retryable, as core does. */
export async function untilAnswered<T>(
  context: CaseContext,
  backend: LockBackend,
  send: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!backend.isRetryable(error)) throw error;
    }
    await context.sleep(PAUSE_MS);
  }
}

const ROUNDS = 3;

/**
 * Asserts that the release of a round is answered with `not-held`. The answer `unknown` is allowed where the connection
 * broke and the command was sent again: then the whole round is repeated.
 */
export async function assertNotHeld(round: () => ReturnType<LockBackend['release']>): Promise<void> {
  let answer = await round();
  for (let rounds = 1; answer === 'unknown' && rounds < ROUNDS; rounds += 1) answer = await round();
  assert.equal(answer, 'not-held');
}

/**
 * Asserts that another client is granted within thirty seconds of a hold that nothing renews. `hold` takes it and gives
 * whether it stood all the time: after a pause of this process that outlasted it the round is repeated.
 */
export async function assertEndsByItself(
  context: CaseContext,
  hold: (backend: LockBackend, name: string) => Promise<boolean>,
): Promise<void> {
  const { locks } = await context.client({ waitMs: 30_000 });
  const backend = await context.backend();
  let name = context.name();
  while (!(await hold(backend, name))) name = context.name();
  await (await locks.lock(name).acquire()).release();
}
