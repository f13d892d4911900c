import assert from 'node:assert/strict';
import type { AcquireRequest, Call, Grant, LockBackend } from '../backend/types.ts';
import { freshAcquisitionId } from '../acquire/acquisition-id.ts';

/** A call that is never given up, for cases that talk to a backend without core. */
export const openCall: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

/** What core would send for an exclusive acquire. */
export function exclusiveRequest(resource: string, ttlMs: number, label = 'raw'): AcquireRequest {
  return { resource, acquisitionId: freshAcquisitionId(), label, mode: { kind: 'exclusive' }, ttlMs };
}

/** Takes a resource that must be free, without core: nothing renews it. */
export async function grab(backend: LockBackend, resource: string, ttlMs: number): Promise<Grant> {
  const attempt = await backend.attempt(exclusiveRequest(resource, ttlMs), false, openCall);
  if (attempt.status !== 'granted')
    assert.fail(`${resource} is free, and an attempt answered ${attempt.status}`);
  return attempt.grant;
}

/** The acquisition ids that hold a resource, as the store says. */
export async function holdersOf(backend: LockBackend, resource: string): Promise<string[]> {
  const { holders } = await backend.inspect(resource, openCall);
  return holders.map(({ acquisitionId }) => acquisitionId);
}
