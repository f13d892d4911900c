import type { AcquireRequest, Call, Grant, LockMode } from '@locks/core/backend';
import { serveCalls } from '@locks/core/conformance/process';
import { sqliteBackend } from '../src/index.ts';

// The program of a RemoteProcess, with a backend of its own.
const backend = sqliteBackend(process.argv[2] ?? '');
const call: Call = { now: () => performance.now(), deadline: Infinity };
const held = new Map<bigint, Grant>();
const attempted = new Map<string, { readonly promise: Promise<void>; readonly resolve: () => void }>();

function attemptOf(key: string): { readonly promise: Promise<void>; readonly resolve: () => void } {
  const known = attempted.get(key);
  if (known !== undefined) return known;
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  attempted.set(key, { promise, resolve });
  return { promise, resolve };
}

async function acquire(resource: string, ttlMs: number, key: string, mode: LockMode): Promise<bigint> {
  const acquisitionId = `${process.pid}-${key}`;
  const request: AcquireRequest = { resource, acquisitionId, mode, ttlMs };
  for (;;) {
    const attempt = await backend.attempt(request, true, call);
    attemptOf(key).resolve();
    const grant = attempt.status === 'granted' ? attempt.grant : await backend.awaitTurn?.(request, call);
    if (grant === undefined) continue;
    const token = grant.fencingToken ?? 0n;
    held.set(token, grant);
    return token;
  }
}

async function release(token: bigint): Promise<string> {
  const grant = held.get(token);
  if (grant === undefined) return 'never held';
  return backend.release(grant, call);
}

/** How often it had its own lock, and whether it goes on. */
let count = 0;
let hurries = true;

/** Acquires and releases its own lock as fast as it can until `stop`; reports how long the slowest call took. */
async function hurry(): Promise<number> {
  let longestMs = 0;
  const timed = async <T>(step: Promise<T>): Promise<T> => {
    const started = performance.now();
    const result = await step;
    longestMs = Math.max(longestMs, performance.now() - started);
    return result;
  };
  for (; hurries; count += 1) {
    // Messages of the test arrive only now and then.
    if (count % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
    const acquisitionId = `${process.pid}-hurry-${count}`;
    const request = {
      resource: `${process.pid}`,
      acquisitionId,
      mode: { kind: 'exclusive' },
      ttlMs: 10_000,
    } as const;
    const attempt = await timed(backend.attempt(request, true, call));
    if (attempt.status === 'granted') await timed(backend.release(attempt.grant, call));
  }
  return longestMs;
}

function stop(): Promise<void> {
  hurries = false;
  return Promise.resolve();
}

const methods = {
  acquire,
  release,
  hurry,
  turns: (): Promise<number> => Promise.resolve(count),
  stop,
  attempted: (key: string): Promise<void> => attemptOf(key).promise,
};
export type RemoteMethods = typeof methods;

serveCalls(methods);
