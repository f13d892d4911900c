import type { LockBackend } from '../backend/types.ts';
import { createLocks } from '../create-locks.ts';
import { describe, invalidArgument } from '../errors.ts';

/** How fast the store can be held to its word, in milliseconds. */
export interface Timing {
  /**
   * The ttl of leases that a case lets expire.
   * @defaultValue 400, or the backend's floor if that is more
   */
  readonly ttlMs: number;
  /**
   * How late the store, the machine and its timers may be.
   * @defaultValue 400
   */
  readonly slackMs: number;
  /**
   * The longest time that a free resource stays idle while somebody waits: after the death of a holder (beyond its ttl),
   * or of the waiter whose turn it is.
   * @defaultValue 1 000
   */
  readonly idleGapMs: number;
}

/** Ways to hurt the store that only the author of a backend knows. Cases that need an absent one are `untested`. */
export interface Faults {
  /** Makes the store unreachable for every backend of the harness in this process; gives what mends it. */
  readonly cut?: () => Promise<() => Promise<void>>;
  /** Takes away the hold of a resource behind its holder's back, as an administrator would: deletes the key, the row. */
  readonly evict?: (resource: string) => Promise<void>;
  /** Tenure `session`: ends the session of this backend. */
  readonly endSession?: (backend: LockBackend) => Promise<void>;
}

/** A case that is known not to hold, and why. Shown in the report and in the matrix. */
export interface Waiver {
  readonly reason: string;
  readonly link: string;
}

export interface HarnessDefinition {
  /**
   * `import.meta.url` of the module that exports the harness: child processes load it. It must not define tests. A process
   * that a case leaves unhurt closes its backend, and makes a new one for the next case.
   */
  readonly module: string;
  /** A new client of the store. Called many times, in several processes: all of them share one store. */
  readonly createBackend: () => LockBackend | Promise<LockBackend>;
  /** Starts what the backends need, once. What it gives as `env` is in `process.env`, here and in child processes. */
  readonly setup?: () => Promise<{
    readonly env?: Readonly<Record<string, string>>;
    teardown(): Promise<void>;
  }>;
  readonly faults?: Faults;
  readonly timing?: Partial<Timing>;
  readonly waivers?: Readonly<Record<string, Waiver>>;
  /** For the report: `redis-ioredis on a cluster`. @defaultValue the backend's name */
  readonly name?: string;
  /** For the report: the server and its version. */
  readonly server?: string;
  /** For the report. @defaultValue 'standalone' */
  readonly topology?: string;
  /** For testing core itself. @defaultValue `createLocks` of `@locks/core` */
  readonly createLocks?: typeof createLocks;
}

export interface Harness extends HarnessDefinition {
  readonly createLocks: typeof createLocks;
}

const brand = Symbol.for('@locks/core/conformance-harness');

/**
 * Describes a backend to the conformance suite.
 *
 * @example
 * ```ts
 * export default defineHarness({ module: import.meta.url, createBackend: () => myBackend(process.env.MY_STORE) });
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function defineHarness(definition: HarnessDefinition): Harness {
  if (typeof definition?.createBackend !== 'function') {
    throw invalidArgument(
      `defineHarness() needs createBackend, a function, not ${describe(definition?.createBackend)}.`,
    );
  }
  if (typeof definition.module !== 'string' || !definition.module.startsWith('file:')) {
    throw invalidArgument(
      `defineHarness() needs module: import.meta.url, not ${describe(definition.module)}.`,
    );
  }
  const harness = { createLocks, ...definition };
  Object.defineProperty(harness, brand, { value: true });
  return harness;
}

/** The harness among the exports of a module. */
export function harnessIn(exports: object): Harness | undefined {
  return Object.values(exports).find(
    (value): value is Harness => typeof value === 'object' && value !== null && brand in value,
  );
}

export function timingOf(harness: Harness, backend: LockBackend): Timing {
  const { minMs } = backend.capabilities.ttl;
  const { ttlMs = Math.max(400, minMs), slackMs = 400, idleGapMs = 1_000 } = harness.timing ?? {};
  return { ttlMs, slackMs, idleGapMs };
}
