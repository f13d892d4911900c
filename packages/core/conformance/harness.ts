import {
  matching,
  milliseconds,
  optional,
  type OptionTable,
  readOptions,
  text,
} from '../src/backend/read-options.ts';
import type { LockBackend } from '../src/backend/types.ts';
import { createLocks } from '../src/create-locks.ts';
import type { ReplyLength } from './proxy/network-faults.ts';
import type { Address } from './proxy/proxy-connection.ts';

/** The times that the suite expects of the store, in milliseconds. */
export interface Timing {
  /**
   * The ttl of leases that a case lets expire, rounded up to the backend's `ttl.stepMs`. Well above the time that the store
   * takes to answer.
   * @defaultValue 400, or the backend's floor if that is more
   */
  readonly ttlMs: number;
  /**
   * How late the store, the machine and its timers may be. A slow store sets at least three times its answer time. In the
   * suite core waits `2 × slackMs` for the answer to a release, where that is more than the `releaseBudgetMs` of the
   * backend.
   * @defaultValue 400
   */
  readonly slackMs: number;
  /**
   * The longest time that a free resource stays idle while somebody waits: after the death of a holder (beyond its ttl),
   * or of the waiter whose turn it is. A store that ends leases at full steps of its clock adds one step.
   * @defaultValue 1 000
   */
  readonly idleGapMs: number;
}

/**
 * How to put a store that is reached by TCP behind proxies, which the suite starts: it drops, delays, cuts and repeats
 * replies on the wire, below the adapter and its client.
 */
export interface Wire {
  /** Where the servers listen. Called after `setup`. */
  readonly servers: () => readonly Address[];
  /** A client that reaches the servers only through these proxies, one for each server, in the same order. */
  readonly createBackend: (proxies: readonly Address[]) => LockBackend | Promise<LockBackend>;
  /** For a protocol whose replies name the request that they answer: then replies are also repeated. */
  readonly replyLength?: ReplyLength;
}

/** Hooks to disturb the store, which only the author of a backend can write. A case whose hook is absent is `untested`. */
export interface Faults {
  /** Makes the store unreachable for every backend in this process, and resolves with a function that repairs it. */
  readonly cut?: () => Promise<() => Promise<void>>;
  /** Deletes the hold of a resource from the store (its key or row), as an administrator would. */
  readonly evict?: (resource: string) => Promise<void>;
  /**
   * Writes something else than the backend would into the place where the store keeps a resource, as another program could. `'none'`: the
   * store has no such place, or takes nothing there that the backend cannot read, or nobody else writes to it.
   */
  readonly corrupt?: 'none' | ((resource: string) => Promise<void>);
  /** How to reach the store through proxies. A backend of reach `network` needs it. */
  readonly wire?: Wire;
  /**
   * Makes a backend on a client of its own, and a function that closes this client as an application would that forgets the locks. For
   * backends that take a client and cannot work without it.
   */
  readonly onOwnClient?: () => Promise<{
    readonly backend: LockBackend;
    closeClient(): Promise<unknown>;
  }>;
  /** Ends the session of this backend. For tenure `session`. */
  readonly endSession?: (backend: LockBackend) => Promise<void>;
}

/** A case that is known not to hold, and why. Shown in the report and in the matrix. */
export interface Waiver {
  /** Why it does not hold. */
  readonly reason: string;
  /** Where that is explained. */
  readonly link: string;
}

/** How the suite reaches a backend: what its author writes. */
export interface HarnessDefinition {
  /**
   * `import.meta.url` of the module that exports the harness: child processes load it, and their renewal threads. It must not define
   * tests. A process that works after a case closes its backend, and makes a new one for the next case.
   */
  readonly module: string;
  /** Makes a new client of the store. It is called many times, in several processes: all clients share one store. */
  readonly createBackend: () => LockBackend | Promise<LockBackend>;
  /**
   * Makes a new client whose locks are under a prefix: what the backend takes for one, a path or the start of its tables' names too. It
   * throws `LOCK_INVALID_ARGUMENT` for a prefix that the backend refuses. `'none'`: no text of the user stands before the names.
   */
  readonly createBackendUnder?: 'none' | ((prefix: string) => LockBackend | Promise<LockBackend>);
  /** Starts what the backends need, once. Its `env` is put into `process.env`, here and in child processes. */
  readonly setup?: () => Promise<{
    readonly env?: Readonly<Record<string, string>>;
    teardown(): Promise<void>;
  }>;
  /** How the store is disturbed. */
  readonly faults?: Faults;
  /** The times of the cases, in milliseconds. */
  readonly timing?: Partial<Timing>;
  /** The cases that are known not to hold, by id. */
  readonly waivers?: Readonly<Record<string, Waiver>>;
  /** For the report: `redis-ioredis on a cluster`. @defaultValue the backend's name */
  readonly name?: string;
  /** For the report: the server and its version. @defaultValue the backend's name */
  readonly server?: string;
  /** For the report. @defaultValue 'standalone' */
  readonly topology?: string;
  /**
   * Replaces core's `createLocks`, so that the suite checks a library of yours, such as a layer over core, against the
   * promises of core. Its arguments are a backend of `createBackend`, perhaps wrapped by a case, and the options of the
   * manager, among them wrong ones that it must refuse. Child processes take it from the same module.
   * @defaultValue `createLocks` of `@locks/core`
   */
  readonly createLocks?: typeof createLocks;
}

/** A definition, complete. */
export interface Harness extends HarnessDefinition {
  readonly createLocks: typeof createLocks;
}

const asGiven = (value: unknown): unknown => value;
const readMs = optional(milliseconds(0, Number.POSITIVE_INFINITY));
const readFunction = matching('a function', (value) => typeof value === 'function');
const readFunctionOrNone = (value: unknown, what: string): unknown =>
  value === 'none' ? value : readFunction(value, what);

const WIRE_TABLE = {
  servers: readFunction,
  createBackend: readFunction,
  replyLength: optional(readFunction),
} satisfies OptionTable<Wire>;

const FAULTS_TABLE = {
  cut: optional(readFunction),
  evict: optional(readFunction),
  corrupt: optional(readFunctionOrNone),
  wire: optional((value, what) => readOptions(what, value, WIRE_TABLE)),
  onOwnClient: optional(readFunction),
  endSession: optional(readFunction),
} satisfies OptionTable<Faults>;

const TIMING_TABLE = { ttlMs: readMs, slackMs: readMs, idleGapMs: readMs } satisfies OptionTable<Timing>;

const TABLE = {
  module: text('import.meta.url', /^file:/),
  createBackend: readFunction,
  createBackendUnder: optional(readFunctionOrNone),
  setup: optional(readFunction),
  faults: optional((value, what) => readOptions(what, value, FAULTS_TABLE)),
  timing: optional((value, what) => readOptions(what, value, TIMING_TABLE)),
  waivers: asGiven,
  name: asGiven,
  server: asGiven,
  topology: asGiven,
  createLocks: optional(readFunction),
} satisfies OptionTable<HarnessDefinition>;

const brand = Symbol.for('@locks/core/conformance-harness');

// setup: import type { LockBackend } from '@locks/core/backend'; import { defineHarness } from '@locks/core/conformance';
// setup: declare function myBackend(url: string | undefined): LockBackend;
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
  readOptions('defineHarness()', definition, TABLE);
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
  const { minMs, stepMs } = backend.capabilities.ttl;
  const { ttlMs = Math.max(400, minMs), slackMs = 400, idleGapMs = 1_000 } = harness.timing ?? {};
  return { ttlMs: inSteps(ttlMs, stepMs), slackMs, idleGapMs };
}

/** A ttl as core sends it: rounded up to the step that the backend declares. */
export function inSteps(ttlMs: number, stepMs: number): number {
  return Math.ceil(ttlMs / stepMs) * stepMs;
}
