import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AcquireRequest, Call, Grant, LockBackend } from '@locks/core/backend';
import { type MachineClock, machineClock } from '@locks/core/machine';
import { createRecordBackend } from '@locks/record-protocol';
import { onTestFinished } from 'vitest';
import { FileStore } from '../src/file-store.ts';
import { type FileBackendOptions, fileBackend } from '../src/index.ts';
import { checkOptions } from '../src/options.ts';
import { nameOfKey } from '../src/record-files.ts';

export const call: Call = { now: () => performance.now(), deadline: Infinity };

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'locks-file-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A backend on a folder of its own, or on the given one; closed when the test ends. */
export function open(folder = join(temporaryFolder(), 'locks'), options: FileBackendOptions = {}) {
  const backend = fileBackend(folder, options) as Required<LockBackend>;
  onTestFinished(() => backend.close());
  return { backend, folder };
}

/** The same with another clock of the machine. */
export function openWithClock(folder: string, clock: MachineClock) {
  const backend = createRecordBackend(new FileStore(checkOptions(folder, undefined), () => clock), {
    prefix: '',
  });
  onTestFinished(() => backend.close());
  return backend as Required<LockBackend>;
}

export function ownClock(): MachineClock {
  return machineClock((says) => new Error(says));
}

export function clockOf(boot: string, startMicros: number, bootIsExact = true): MachineClock {
  const started = process.hrtime.bigint();
  const nowMicros = (): number => startMicros + Number((process.hrtime.bigint() - started) / 1000n);
  return { boot, bootIsExact, nowMicros };
}

/** The folder of this boot. */
export function bootFolder(folder: string): string {
  return join(folder, `1.${ownClock().boot}`);
}

/** The folder of the record of a lock. */
export function recordFolder(folder: string, resource: string): string {
  return join(bootFolder(folder), 'k', nameOfKey(`lock/${resource}`));
}

/** The name of the pointer of a lock. */
export function pointerOf(folder: string, resource: string): string {
  const [pointer = '', ...others] = readdirSync(recordFolder(folder, resource));
  if (others.length > 0) throw new Error(`${resource} has ${others.length + 1} pointers`);
  return pointer;
}

let count = 0;

export function request(resource: string, ttlMs = 10_000): AcquireRequest {
  count += 1;
  return { resource, acquisitionId: `${process.pid}-${count}`, mode: { kind: 'exclusive' }, ttlMs };
}

/** One attempt that must succeed. */
export async function take(backend: LockBackend, wanted: AcquireRequest): Promise<Grant> {
  const attempt = await backend.attempt(wanted, false, call);
  if (attempt.status !== 'granted') throw new Error(`${wanted.resource} is ${attempt.status}`);
  return attempt.grant;
}

/** What core does: attempt, wait, attempt again. */
export async function acquire(backend: LockBackend, wanted: AcquireRequest): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(wanted, true, call);
    if (attempt.status === 'granted') return attempt.grant;
    const grant = await backend.awaitTurn?.(wanted, call);
    if (grant !== undefined) return grant;
  }
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
