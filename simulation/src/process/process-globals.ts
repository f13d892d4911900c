import type { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { SimulatedPgClient } from '../postgres/simulated-pg-client.ts';
import type { SimulatedProcess, SimulatedTimer } from './simulated-process.ts';

/** The process for which code runs now: code that is loaded once serves one process in each run. */
export type CurrentProcess = () => SimulatedProcess;

/** Before timers and messages, as in Node, and there before microtasks too. */
function nextTick<T extends unknown[]>(callback: (...values: T) => void, ...values: T): void {
  queueMicrotask(() => callback(...values));
}

/** Tells of nothing: when an object is garbage-collected depends on the machine, and not on the seed. */
class SilentRegistry {
  register(): void {}
  unregister(): void {}
}

/** What code in a simulated process finds in place of Node's globals. */
export function globalsOf(current: CurrentProcess): Readonly<Record<string, unknown>> {
  const clear = (timer: SimulatedTimer | undefined): void => timer?.cancel();
  // A class of which every read of the time is simulated; nothing in core makes a date.
  const date = { now: () => current().clock.wall() };
  const math = Object.create(Math, { random: { value: () => current().random.next() } }) as Math;
  type SetTimeout = SimulatedProcess['setTimeout'];
  type SetInterval = SimulatedProcess['setInterval'];
  type SetImmediate = SimulatedProcess['setImmediate'];
  return {
    process: { pid: 1, env: {}, versions: process.versions, emitWarning() {}, nextTick },
    performance: { now: () => current().clock.monotonic() },
    Date: date,
    Math: math,
    FinalizationRegistry: SilentRegistry,
    setTimeout: (...given: Parameters<SetTimeout>) => current().setTimeout(...given),
    clearTimeout: clear,
    setInterval: (...given: Parameters<SetInterval>) => current().setInterval(...given),
    clearInterval: clear,
    setImmediate: (...given: Parameters<SetImmediate>) => current().setImmediate(...given),
    clearImmediate: clear,
  };
}

/** The modules of Node that depend on time, chance or the machine. */
export function modulesOf(current: CurrentProcess): Readonly<Record<string, unknown>> {
  const randomBytes = (size: number): Buffer => current().randomBytes(size);
  const randomFillSync = (target: Buffer): Buffer => {
    randomBytes(target.length).copy(target);
    return target;
  };
  return {
    'node:timers/promises': { setTimeout: delayIn(current), setImmediate: turnIn(current) },
    'node:crypto': {
      randomBytes,
      randomUUID: () => randomBytes(16).toString('hex'),
      createHash,
      randomFillSync,
    },
    // A pool or a client is given to the adapter: it makes none.
    mysql2: {},
    etcd3: {},
    // Connections beside the pool are made like those of the pool.
    pg: { Client: SimulatedPgClient },
    'node:os': { hostname: () => current().name },
  };
}

function turnIn(current: CurrentProcess) {
  return <T>(value?: T): Promise<T | undefined> =>
    new Promise((resolve) => void current().setImmediate(() => resolve(value)));
}

function delayIn(current: CurrentProcess) {
  return <T>(ms = 1, value?: T, { signal }: { readonly signal?: AbortSignal } = {}): Promise<T | undefined> =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        timer.cancel();
        reject(
          Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' }),
        );
      };
      const timer = current().setTimeout(() => {
        signal?.removeEventListener('abort', abort);
        resolve(value);
      }, ms);
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
}
