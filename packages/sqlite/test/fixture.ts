import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { AcquireRequest, Call, Grant, LockBackend } from '@locks/core/backend';
import { onTestFinished } from 'vitest';
import { type SqliteBackendOptions, type SqliteCapabilities, sqliteBackend } from '../src/index.ts';

export const call: Call = { now: () => performance.now(), deadline: Infinity };

export function callFor(ms: number): Call {
  return { now: call.now, deadline: performance.now() + ms };
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'locks-sqlite-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A backend on a file of its own, or on the given one; closed when the test ends. */
export function open(
  path = join(temporaryFolder(), 'locks.db'),
  options: Partial<SqliteBackendOptions> = {},
) {
  const backend = sqliteBackend(path, { ...options }) as Required<LockBackend<SqliteCapabilities>>;
  onTestFinished(() => backend.close());
  return { backend, path };
}

let count = 0;

export function request(resource: string, ttlMs = 10_000, label?: string): AcquireRequest {
  count += 1;
  const acquisitionId = `${process.pid}-${count}`;
  return { resource, acquisitionId, mode: { kind: 'exclusive' }, ttlMs, ...(label && { label }) };
}

export function shared(resource: string, ttlMs?: number): AcquireRequest {
  return { ...request(resource, ttlMs), mode: { kind: 'shared' } };
}

export function permit(resource: string, limit: number, weight = 1, ttlMs?: number): AcquireRequest {
  return { ...request(resource, ttlMs), mode: { kind: 'permit', limit, weight } };
}

/** Puts a request into the queue, and waits there. */
export async function queue(
  backend: LockBackend,
  wanted: AcquireRequest,
): Promise<{ readonly granted: Promise<Grant>; entered: boolean }> {
  const attempt = await backend.attempt(wanted, true, call);
  if (attempt.status !== 'contended') throw new Error(`${wanted.resource} is ${attempt.status}`);
  const granted = acquire(backend, wanted, callFor(20_000));
  const waiter = { granted, entered: false };
  granted.then(
    () => {
      waiter.entered = true;
    },
    () => undefined, // a test that cares awaits `granted`
  );
  return waiter;
}

/** One attempt that must succeed. */
export async function take(backend: LockBackend, wanted: AcquireRequest): Promise<Grant> {
  const attempt = await backend.attempt(wanted, false, call);
  if (attempt.status !== 'granted') throw new Error(`${wanted.resource} is contended`);
  return attempt.grant;
}

/** What core does: attempt, wait, attempt again. */
export async function acquire(
  backend: LockBackend,
  wanted: AcquireRequest,
  within: Call = call,
): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(wanted, true, within);
    if (attempt.status === 'granted') return attempt.grant;
    const grant = await backend.awaitTurn?.(wanted, within);
    if (grant !== undefined) return grant;
    if (within.now() >= within.deadline) throw new Error(`${wanted.acquisitionId} waited in vain`);
  }
}

/** How many rows the file has, also those that no call shows. */
export function rowsIn(path: string): { holds: number; waiters: number; clients: number } {
  const db = new DatabaseSync(path, { readOnly: true });
  const count = (table: string): number => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n);
  const rows = { holds: count('holds'), waiters: count('waiters'), clients: count('clients') };
  db.close();
  return rows;
}

/** Polls until `check` gives a true value. */
export async function until<T>(check: () => T | Promise<T>, withinMs = 50_000): Promise<NonNullable<T>> {
  const end = performance.now() + withinMs;
  for (;;) {
    const result = await check();
    if (result) return result;
    if (performance.now() > end) throw new Error(`not so within ${withinMs} ms: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
