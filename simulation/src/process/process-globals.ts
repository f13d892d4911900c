import { Buffer } from 'node:buffer';
import type { SimulatedProcess, SimulatedTimer } from './simulated-process.ts';

/** What code in a simulated process finds in place of Node's globals. */
export function globalsOf(process: SimulatedProcess): Readonly<Record<string, unknown>> {
  const { clock, random } = process;
  const clear = (timer: SimulatedTimer | undefined): void => timer?.cancel();
  // A class of which every read of the time is simulated; nothing in core makes a date.
  const date = { now: () => clock.wall() };
  const math = Object.create(Math, { random: { value: () => random.next() } }) as Math;
  return {
    process: { pid: 1, env: {}, emitWarning() {} },
    performance: { now: () => clock.monotonic() },
    Date: date,
    Math: math,
    setTimeout: process.setTimeout.bind(process),
    clearTimeout: clear,
    setInterval: process.setInterval.bind(process),
    clearInterval: clear,
    setImmediate: process.setImmediate.bind(process),
    clearImmediate: clear,
  };
}

/** The modules of Node that depend on time, chance or the machine. */
export function modulesOf(process: SimulatedProcess): Readonly<Record<string, unknown>> {
  const { random, name } = process;
  const randomBytes = (size: number): Buffer => {
    const words = Uint32Array.from({ length: Math.ceil(size / 4) }, () => random.word());
    return Buffer.from(words.buffer, 0, size);
  };
  return {
    'node:timers/promises': { setTimeout: delayIn(process) },
    'node:crypto': { randomBytes, randomUUID: () => randomBytes(16).toString('hex') },
    'node:os': { hostname: () => name },
  };
}

function delayIn(process: SimulatedProcess) {
  return <T>(ms = 1, value?: T, { signal }: { readonly signal?: AbortSignal } = {}): Promise<T | undefined> =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        timer.cancel();
        reject(
          Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' }),
        );
      };
      const timer = process.setTimeout(() => {
        signal?.removeEventListener('abort', abort);
        resolve(value);
      }, ms);
      if (signal?.aborted) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
}
