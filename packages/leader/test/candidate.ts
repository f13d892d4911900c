import type { FencedLease } from '@locks/core';
import { createLocks, type LockManager } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { vi } from 'vitest';
import { election, type LeadOptions, type Leadership } from '../src/index.ts';

/** A candidate with a manager of its own, whose work lasts until its signal aborts or the test ends it. */
export class Candidate {
  readonly locks: LockManager<FencedLease>;
  readonly name: string;
  readonly stop = new AbortController();
  /** Every leadership, the last one last. */
  readonly led: Leadership<FencedLease>[] = [];
  /** The leadership whose work runs now. */
  current: Leadership<FencedLease> | undefined;
  endWork: (error?: Error) => void = () => {};
  readonly over: Promise<unknown>;
  /** How `lead` ended: `undefined` while it has not. */
  outcome: { readonly error?: unknown } | undefined;

  constructor(store: MemoryStore, name: string, options: Omit<LeadOptions, 'signal' | 'label'> = {}) {
    this.name = name;
    this.locks = createLocks(memoryBackend(store), { ttlMs: 500 });
    const { signal } = this.stop;
    this.over = election(this.locks, 'scheduler')
      .lead((leadership) => this.#work(leadership), {
        backoff: { firstMs: 5, longestMs: 20 },
        ...options,
        signal,
        label: name,
      })
      .then(
        () => (this.outcome = {}),
        (error: unknown) => (this.outcome = { error }),
      );
  }

  get leads(): boolean {
    return this.current !== undefined;
  }

  async #work(leadership: Leadership<FencedLease>): Promise<void> {
    this.led.push(leadership);
    this.current = leadership;
    const { signal } = leadership;
    try {
      await new Promise<void>((resolve, reject) => {
        this.endWork = (error) => (error === undefined ? resolve() : reject(error));
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
    } finally {
      this.current = undefined;
    }
  }
}

const WAIT = { timeout: 20_000, interval: 2 };
export const until = (condition: () => void | Promise<void>) => vi.waitFor(condition, WAIT);
export const forEver = ({ signal }: { readonly signal: AbortSignal }) =>
  new Promise<void>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );

/** Candidates on one store; all of them are ended after the use. */
export async function withCandidates(
  use: (
    add: (name: string, options?: ConstructorParameters<typeof Candidate>[2]) => Candidate,
  ) => Promise<void>,
): Promise<void> {
  const store = new MemoryStore();
  const added: Candidate[] = [];
  try {
    await use((name, options) => {
      const candidate = new Candidate(store, name, options);
      added.push(candidate);
      return candidate;
    });
  } finally {
    for (const { stop } of added) stop.abort();
    await Promise.all(added.map(({ over }) => over));
    await Promise.all(added.map(({ locks }) => locks.close()));
  }
}
