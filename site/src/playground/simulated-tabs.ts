import { createLocks, type FencedLease, isLockError, type LockManager } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';

const RESOURCE = 'sku:42';
/** What an abandoned lease costs the next waiter, in milliseconds. */
const TTL_MS = 4_000;
const EVENTS_KEPT = 12;

export type TabState = 'idle' | 'waiting' | 'holding' | 'frozen' | 'lost';

export interface TabView {
  readonly name: string;
  readonly state: TabState;
  /** The fencing token of the lease that the tab holds, or believes to hold. */
  readonly token: string;
}

/** Tabs that share one store, as processes share a server: each has a lock manager of its own. */
export class SimulatedTabs {
  readonly #store = new MemoryStore();
  readonly #tabs: SimulatedTab[];
  readonly #events: string[] = [];
  readonly #changed: () => void;
  readonly #startedAt = performance.now();

  /** @param changed is called whenever a tab or the list of events has changed. */
  constructor(names: readonly string[], changed: () => void) {
    this.#changed = changed;
    this.#tabs = names.map((name) => new SimulatedTab(name, this.#store, (event) => this.#tell(name, event)));
  }

  get tabs(): readonly TabView[] {
    return this.#tabs.map(({ name, state, token }) => ({ name, state, token }));
  }

  /** The last events, the newest first. */
  get events(): readonly string[] {
    return this.#events;
  }

  acquire(index: number): Promise<void> {
    return this.#tab(index).acquire();
  }

  release(index: number): Promise<void> {
    return this.#tab(index).release();
  }

  /** The tab does nothing any more, as a process that stands still: its lease is not renewed. */
  freeze(index: number): void {
    this.#tab(index).freeze();
  }

  /** The tab goes on, and learns what became of its lease. */
  resume(index: number): void {
    this.#tab(index).resume();
  }

  async close(): Promise<void> {
    await Promise.all(this.#tabs.map((tab) => tab.close()));
  }

  #tab(index: number): SimulatedTab {
    const tab = this.#tabs[index];
    if (tab === undefined) throw new RangeError(`there is no tab ${index}`);
    return tab;
  }

  #tell(name: string, event: string): void {
    const seconds = ((performance.now() - this.#startedAt) / 1_000).toFixed(1);
    this.#events.unshift(`${seconds} s: ${name} ${event}`);
    this.#events.splice(EVENTS_KEPT);
    this.#changed();
  }
}

class SimulatedTab {
  readonly name: string;
  state: TabState = 'idle';
  token = '';
  readonly #locks: LockManager<FencedLease>;
  readonly #tell: (event: string) => void;
  #lease: FencedLease | undefined;
  #renewal: ReturnType<typeof setInterval> | undefined;
  #closed = false;

  constructor(name: string, store: MemoryStore, tell: (event: string) => void) {
    this.name = name;
    this.#tell = tell;
    this.#locks = createLocks(memoryBackend(store), {
      ttlMs: TTL_MS,
      renewal: 'manual',
      label: name,
    });
  }

  async acquire(): Promise<void> {
    if (this.state === 'waiting' || this.state === 'holding' || this.state === 'frozen') return;
    this.#become('waiting', 'asks for the lock');
    try {
      const lease = await this.#locks.lock(RESOURCE).acquire({ waitMs: Number.POSITIVE_INFINITY });
      this.#lease = lease;
      this.token = String(lease.fencingToken);
      this.#renewal = setInterval(() => void lease.renew().catch(() => {}), TTL_MS / 4);
      lease.signal.addEventListener('abort', () => this.#lose(lease));
      this.#become('holding', `holds the lock, token ${this.token}`);
    } catch (error) {
      if (this.#closed && isLockError(error)) return;
      throw error;
    }
  }

  async release(): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined || this.state !== 'holding') return;
    this.#forget();
    this.#become('idle', 'releases the lock');
    await lease.release();
  }

  freeze(): void {
    if (this.state !== 'holding') return;
    clearInterval(this.#renewal);
    this.#become(
      'frozen',
      `stands still: its lease is no longer renewed and ends within ${TTL_MS / 1_000} s`,
    );
  }

  resume(): void {
    const lease = this.#lease;
    if (this.state !== 'frozen' || lease === undefined) return;
    if (lease.signal.aborted) {
      this.#lose(lease, true);
      return;
    }
    this.#renewal = setInterval(() => void lease.renew().catch(() => {}), TTL_MS / 4);
    void lease.renew().catch(() => {});
    this.#become('holding', 'goes on in time, and renews its lease');
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#forget();
    await this.#locks.close();
  }

  /** A frozen tab learns of the loss only when it goes on. */
  #lose(lease: FencedLease, resumed = false): void {
    if (this.#lease !== lease || this.#closed || (this.state === 'frozen' && !resumed)) return;
    this.#forget();
    this.#become(
      'lost',
      'learns that its lease ended: its signal has aborted, and a write with its token is refused',
    );
  }

  #forget(): void {
    clearInterval(this.#renewal);
    this.#lease = undefined;
    this.token = '';
  }

  #become(state: TabState, event: string): void {
    this.state = state;
    this.#tell(event);
  }
}
