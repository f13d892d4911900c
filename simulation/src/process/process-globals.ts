import type { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import * as diagnostics from 'node:diagnostics_channel';
import type { ProtocolMessage } from '../../../packages/history/src/trace-encoder.ts';
import type { ProcessClock } from './process-clock.ts';
import { filesIn, sqliteIn } from './machine-modules.ts';
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
  const clockOf = (process: SimulatedProcess): ProcessClock => {
    process.passes('clock read');
    return process.clock;
  };
  const date = { now: () => clockOf(current()).wall() };
  const math = Object.create(Math, { random: { value: () => current().random.next() } }) as Math;
  type SetTimeout = SimulatedProcess['setTimeout'];
  type SetInterval = SimulatedProcess['setInterval'];
  type SetImmediate = SimulatedProcess['setImmediate'];
  return {
    process: {
      get pid() {
        return current().pid;
      },
      get platform() {
        return current().machine?.platform;
      },
      env: {},
      versions: process.versions,
      emitWarning() {},
      nextTick,
      hrtime: { bigint: () => current().machine?.hrtime() ?? monotonicNs(current()) },
      kill: (pid: number) => current().machine?.signal(pid),
      getBuiltinModule: () => sqliteIn(current),
    },
    crypto: {
      getRandomValues: (target: Uint32Array) => {
        for (const index of target.keys()) target[index] = current().random.word();
        return target;
      },
    },
    queueMicrotask: (callback: () => void) => queueMicrotask(() => current().goOn(callback)),
    performance: { now: () => clockOf(current()).monotonic() },
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
    'node:diagnostics_channel': { ...diagnostics, channel: channelIn(current) },
    // The client of ZooKeeper runs as it is, over simulated sockets.
    net: { connect: (server: { readonly host: string }) => current().connect(server) },
    'node:fs': { ...filesIn(current), existsSync: () => true },
    'node:worker_threads': { Worker: workerIn(current) },
    // Connections beside the pool are made like those of the pool.
    pg: { Client: SimulatedPgClient },
    'node:os': { hostname: () => current().name },
  };
}

function monotonicNs({ clock }: SimulatedProcess): bigint {
  return BigInt(Math.floor(clock.monotonic() * 1e6));
}

/** A constructor that gives what the process has of a thread. */
function workerIn(current: CurrentProcess): unknown {
  return function Worker(_program: URL, { workerData }: { readonly workerData: unknown }): object {
    return current().startThread(workerData).worker;
  };
}

/** The channel of the protocol belongs to one process; what else core publishes goes to all that listen. */
function channelIn(current: CurrentProcess) {
  const protocol = {
    get hasSubscribers(): boolean {
      return current().onProtocol !== undefined;
    },
    publish: (message: ProtocolMessage) => current().onProtocol?.(message),
  };
  return (name: string) => (name === 'locks:protocol' ? protocol : diagnostics.channel(name));
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
