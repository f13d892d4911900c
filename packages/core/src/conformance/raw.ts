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
