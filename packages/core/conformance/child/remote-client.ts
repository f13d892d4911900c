import type { LockManager } from '../../src/create-locks.ts';
import { isLockError } from '../../src/errors.ts';
import { onLockEvent } from '../../src/events.ts';
import type { Lease } from '../../src/lease.ts';
import { delegate } from '../delegate.ts';
import type { Harness } from '../harness.ts';
import { type CriticalSection, enter, machineNow } from '../critical-section.ts';
import { keptOpen } from '../kept-open.ts';
import { roundsUpTo } from '../rounds.ts';
import type {
  Commands,
  ContendOptions,
  LeaseReading,
  OpenOptions,
  RemoteKind,
  RemoteLease,
  RemoteOptions,
} from './protocol.ts';
import { setWallClock } from './wall-clock.ts';

/** Runs the commands of the parent in a child process. */
export class RemoteClient implements Commands {
  readonly #harness: Harness;
  readonly #unhandled: readonly string[];
  readonly #leases = new Map<number, Lease>();
  #manager: LockManager | undefined;
  #threadStopped: Promise<void> | undefined;
  #count = 0;

  constructor(harness: Harness, unhandled: readonly string[]) {
    this.#harness = harness;
    this.#unhandled = unhandled;
  }

  async open({ releaseBudgetMs, maxBlockedMs, endsAtRenewal }: OpenOptions = {}): Promise<void> {
    const backend = await this.#harness.createBackend();
    const given = releaseBudgetMs === undefined ? backend : delegate(backend, { releaseBudgetMs });
    if (maxBlockedMs === undefined) {
      this.#manager = this.#harness.createLocks(given);
      return;
    }
    // The module is imported here: the others start faster without it.
    const { renewalThread } = await import('../../src/renewal-thread/index.ts');
    const module = new URL('../thread/main.js', import.meta.url);
    module.searchParams.set('harness', this.#harness.module);
    if (endsAtRenewal) {
      module.searchParams.set('endsAtRenewal', '');
      // Its warning is part of the case.
      process.removeAllListeners('warning');
      this.#threadStopped = new Promise((resolve) => {
        const stop = onLockEvent('locks:renewal-thread-stopped', () => resolve(stop()));
      });
    }
    this.#manager = this.#harness.createLocks(given, {
      renewalThread: renewalThread(module, { maxBlockedMs }),
    });
  }

  async untilThreadStopped(): Promise<void> {
    await this.#threadStopped;
  }

  async close(): Promise<void> {
    await this.#locks.close();
    this.#manager = undefined;
    this.#leases.clear();
    if (this.#unhandled.length > 0) throw new Error(`Unhandled errors: ${this.#unhandled.join(', ')}`);
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

  async read(id: number): Promise<LeaseReading> {
    return reading(this.#lease(id));
  }

  async untilAborted(id: number): Promise<{ at: number; reason: string }> {
    const { signal } = this.#lease(id);
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return { at: machineNow(), reason: reasonOf(signal) };
  }

  async readAfterBlock(id: number, ms: number): Promise<LeaseReading> {
    const lease = this.#lease(id);
    block(ms);
    return reading(lease);
  }

  async abortedAfterBlock(id: number, ms: number): Promise<boolean> {
    const { signal } = this.#lease(id);
    block(ms);
    // A timer made now runs after those that were due during the stall; nothing reads the lease before it.
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

  async acquireAndBlock(name: string, options: RemoteOptions, ms: number): Promise<RemoteLease> {
    const acquiring = this.#locks.lock(name).acquire(options);
    block(ms);
    return this.#keep(await acquiring);
  }

  async releaseAndBlock(id: number, ms: number, isUnderWay: boolean): Promise<void> {
    const releasing = this.#lease(id).release();
    if (isUnderWay) await Promise.race([releasing, new Promise((resolve) => setImmediate(resolve))]);
    block(ms);
    await releasing;
  }

  async contend(
    name: string,
    who: string,
    { rounds, holdMs = 0, kinds = ['exclusive'], ...options }: ContendOptions,
  ): Promise<CriticalSection[]> {
    const sections: CriticalSection[] = [];
    for (const round of roundsUpTo(rounds)) {
      const kind = kinds[round % kinds.length];
      const lease = await this.#acquire(name, kind, options);
      const hold = (): Promise<unknown> =>
        new Promise((resolve) => (holdMs === 0 ? setImmediate(resolve) : setTimeout(resolve, holdMs)));
      sections.push(await enter(lease, `${who} #${round}`, hold));
    }
    return sections;
  }

  async setWallClock(offsetMs: number): Promise<void> {
    setWallClock(offsetMs);
  }

  async timers(): Promise<number> {
    return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  }

  async keptOpen(): Promise<string> {
    return keptOpen();
  }

  async closeAndLinger(): Promise<void> {
    await this.#locks.close();
    // The channel is released once this reply is on its way.
    setTimeout(() => process.channel?.unref(), 50).unref();
  }

  get #locks(): LockManager {
    if (this.#manager === undefined) throw new Error('The manager is closed.');
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
    if (lease === undefined) throw new Error(`There is no lease ${id} in this process.`);
    return lease;
  }
}

/** Blocks the event loop without using the processor. */
function block(ms: number): void {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const end = performance.now() + ms;
  for (let left = ms; left > 0; left = end - performance.now()) Atomics.wait(cell, 0, 0, left);
}

function reading(lease: Lease): LeaseReading {
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
