import type { LockManager } from '../../create-locks.ts';
import { isLockError } from '../../errors.ts';
import type { Lease } from '../../lease.ts';
import type { Harness } from '../harness.ts';
import { machineNow, type Stay } from '../history.ts';
import type {
  Commands,
  ContendOptions,
  Reading,
  RemoteKind,
  RemoteLease,
  RemoteOptions,
} from './protocol.ts';
import { setWallClock } from './wall-clock.ts';

/** Does in a child process what the parent says. */
export class RemoteClient implements Commands {
  readonly #harness: Harness;
  readonly #unhandled: readonly string[];
  readonly #leases = new Map<number, Lease>();
  #manager: LockManager | undefined;
  #count = 0;

  constructor(harness: Harness, unhandled: readonly string[]) {
    this.#harness = harness;
    this.#unhandled = unhandled;
  }

  async open(): Promise<void> {
    this.#manager = this.#harness.createLocks(await this.#harness.createBackend());
  }

  async close(): Promise<void> {
    await this.#locks.close();
    this.#manager = undefined;
    this.#leases.clear();
    if (this.#unhandled.length > 0) throw new Error(`Nobody handled ${this.#unhandled.join(', ')}`);
  }

  async acquire(name: string, options?: RemoteOptions, kind?: RemoteKind): Promise<RemoteLease> {
    return this.#keep(await this.#acquire(name, kind, options));
  }

  async tryAcquire(name: string, options?: RemoteOptions): Promise<RemoteLease | undefined> {
    const lease = await this.#locks.lock(name).tryAcquire(options);
    return lease && this.#keep(lease);
  }

  async release(id: number): Promise<void> {
    await this.#lease(id).release();
  }

  async renew(id: number, ttlMs?: number): Promise<void> {
    await this.#lease(id).renew(ttlMs);
  }

  async read(id: number): Promise<Reading> {
    return reading(this.#lease(id));
  }

  async untilAborted(id: number): Promise<{ at: number; reason: string }> {
    const { signal } = this.#lease(id);
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { at: machineNow(), reason: reasonOf(signal) };
  }

  async readAfterBlock(id: number, ms: number): Promise<Reading> {
    const lease = this.#lease(id);
    block(ms);
    return reading(lease);
  }

  async abortedAfterBlock(id: number, ms: number): Promise<boolean> {
    const { signal } = this.#lease(id);
    block(ms);
    // A timer made now is due after those that fell due during the stall; nothing of the lease is read before it.
    await new Promise((resolve) => setTimeout(resolve, 1));
    return signal.aborted;
  }

  async abortedBeforeNext(id: number, ms: number): Promise<boolean> {
    const { name, signal } = this.#lease(id);
    block(ms);
    const next = await this.#locks.lock(name).acquire();
    const { aborted } = signal;
    await next.release();
    return aborted;
  }

  async contend(
    name: string,
    who: string,
    { rounds, stayMs = 0, kinds = ['exclusive'], ...options }: ContendOptions,
  ): Promise<Stay[]> {
    const stays: Stay[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const kind = kinds[round % kinds.length];
      const lease = await this.#acquire(name, kind, options);
      const enteredAt = machineNow();
      await new Promise((resolve) => (stayMs === 0 ? setImmediate(resolve) : setTimeout(resolve, stayMs)));
      const leftAt = machineNow();
      stays.push({
        who: `${who} #${round}`,
        enteredAt,
        leftAt,
        token: lease.fencingToken?.toString(),
        mode: lease.mode,
      });
      await lease.release();
    }
    return stays;
  }

  async setWallClock(offsetMs: number): Promise<void> {
    setWallClock(offsetMs);
  }

  async timers(): Promise<number> {
    return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  }

  async closeAndLinger(): Promise<void> {
    await this.#locks.close();
    // Once this reply is on its way.
    setTimeout(() => process.channel?.unref(), 50).unref();
  }

  get #locks(): LockManager {
    if (this.#manager === undefined) throw new Error('It is not open.');
    return this.#manager;
  }

  #acquire(name: string, kind: RemoteKind = 'exclusive', options?: RemoteOptions): Promise<Lease> {
    switch (kind) {
      case 'exclusive':
        return this.#locks.lock(name).acquire(options);
      case 'shared':
        return this.#locks.readWriteLock(name).read.acquire(options);
      default:
        return this.#locks.semaphore(name, kind.permits).acquire({ ...options, weight: kind.weight });
    }
  }

  #keep(lease: Lease): RemoteLease {
    this.#count += 1;
    this.#leases.set(this.#count, lease);
    const { acquisitionId, fencingToken } = lease;
    return { id: this.#count, acquisitionId, token: fencingToken?.toString(), acquiredAt: machineNow() };
  }

  #lease(id: number): Lease {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw new Error(`No lease ${id} here.`);
    return lease;
  }
}

/** Holds the event loop, and leaves the processor to the others meanwhile. */
function block(ms: number): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const end = performance.now() + ms;
  for (let left = ms; left > 0; left = end - performance.now()) Atomics.wait(cell, 0, 0, left);
}

function reading(lease: Lease): Reading {
  let assertion: string | undefined;
  try {
    lease.assertValid();
  } catch (error) {
    assertion = isLockError(error) ? error.code : String(error);
  }
  const { validForMs, holdCount, signal } = lease;
  return {
    validForMs,
    holdCount,
    assertion,
    aborted: signal.aborted,
    reason: signal.aborted ? reasonOf(signal) : undefined,
  };
}

function reasonOf(signal: AbortSignal): string {
  return isLockError(signal.reason) ? (signal.reason.reason ?? signal.reason.code) : String(signal.reason);
}
