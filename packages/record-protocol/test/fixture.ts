import type { AcquireRequest, Call, Grant, LockBackend } from '@locks/core/backend';
import { onTestFinished } from 'vitest';
import { createRecordBackend, type RecordStore } from '../src/index.ts';

export const call: Call = { now: () => performance.now(), deadline: Infinity };

export function callFor(ms: number): Call {
  return { now: call.now, deadline: performance.now() + ms };
}

export function open(store: RecordStore): LockBackend {
  const backend = createRecordBackend(store);
  onTestFinished(() => backend.close());
  return backend;
}

let ids = 0;

export function request(resource: string, more: Partial<AcquireRequest> = {}): AcquireRequest {
  ids += 1;
  return { resource, acquisitionId: `id-${ids}`, mode: { kind: 'exclusive' }, ttlMs: 10_000, ...more };
}

/** One attempt that must succeed. */
export async function take(backend: LockBackend, wanted: AcquireRequest): Promise<Grant> {
  const attempt = await backend.attempt(wanted, false, call);
  if (attempt.status !== 'granted') throw new Error(`${wanted.resource} is ${attempt.status}`);
  return attempt.grant;
}

export async function isContended(backend: LockBackend, resource: string): Promise<boolean> {
  return (await backend.attempt(request(resource), false, call)).status === 'contended';
}

/** What core does: attempt, wait, attempt again. */
export async function acquire(
  backend: LockBackend,
  wanted: AcquireRequest,
  within: Call = callFor(10_000),
): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(wanted, true, within);
    if (attempt.status === 'granted') return attempt.grant;
    if (attempt.status === 'full') throw Object.assign(new Error('the queue is full'), { attempt });
    const grant = await backend.awaitTurn?.(wanted, within);
    if (grant !== undefined) return grant;
    if (within.now() >= within.deadline) throw new Error(`${wanted.acquisitionId} waited in vain`);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Polls until `check` gives something true. */
export async function until<T>(check: () => T | Promise<T>, withinMs = 10_000): Promise<NonNullable<T>> {
  const end = performance.now() + withinMs;
  for (;;) {
    const result = await check();
    if (result) return result;
    if (performance.now() > end) throw new Error(`not so within ${withinMs} ms: ${check}`);
    await sleep(2);
  }
}
