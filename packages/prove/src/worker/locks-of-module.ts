import { createLocks, type Lease, LockError, type LockManager } from '@locks/core';
import type { BackendCapabilities, LockBackend, LockMode } from '@locks/core/backend';
import { type Harness, harnessIn } from '@locks/core/conformance';
import type { RecordableLease } from '@locks/history';
import type { OtherLocks, OtherLease } from '../other-locks.ts';
import type { StoreModule } from './worker-commands.ts';

export interface AcquireLimits {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly signal?: AbortSignal;
}

/** A lease of the locks that are examined. */
export type ExaminedLease = RecordableLease & { release(): Promise<unknown> };

/** The locks that are examined, of this family or of another library. */
export interface ExaminedLocks {
  readonly name: string;
  /** Whether they are those of another library: it is given no abort signals. */
  readonly isOther: boolean;
  readonly capabilities: BackendCapabilities;
  acquire(name: string, mode: LockMode, limits: AcquireLimits): Promise<ExaminedLease | undefined>;
  /** The names below a prefix that are held or waited for; absent where the store cannot list. */
  readonly list?: (prefix: string) => Promise<readonly string[]>;
  /** Ends the holds of a name. */
  readonly forceRelease?: (name: string) => Promise<unknown>;
  close(): Promise<unknown>;
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` for a module that opens no locks; what its default export throws */
export async function openLocks(store: StoreModule): Promise<ExaminedLocks> {
  const opened = await openModule(store);
  return 'acquire' in opened ? ofOther(opened) : ofBackend(opened);
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` for a module that opens no backend; what its default export throws */
export async function backendOf(store: StoreModule): Promise<LockBackend> {
  const opened = await openModule(store);
  if ('acquire' in opened)
    throw wrongModule(store.module, 'it opens locks of another library, and no LockBackend');
  return opened.backend;
}

interface OpenedBackend {
  readonly backend: LockBackend;
  /** Closes the client of the backend. */
  readonly close?: () => unknown;
}

async function openModule({ module, argument }: StoreModule): Promise<OpenedBackend | OtherLocks> {
  const exports = (await import(module)) as { readonly default?: unknown };
  const harness = harnessIn(exports);
  if (harness !== undefined) return { backend: await ofHarness(harness) };
  const opened = await opensBy(exports.default, module)(argument);
  if (isOther(opened)) return opened;
  if (isBackend(opened)) return { backend: opened };
  if (isBackend((opened as Partial<OpenedBackend> | undefined)?.backend)) return opened as OpenedBackend;
  throw wrongModule(module, 'its default export gives no LockBackend, nor an object with acquire()');
}

async function ofHarness(harness: Harness): Promise<LockBackend> {
  const started = await harness.setup?.();
  Object.assign(process.env, started?.env);
  return await harness.createBackend();
}

function opensBy(given: unknown, module: string): (argument: unknown) => unknown {
  if (typeof given === 'function') return given as (argument: unknown) => unknown;
  throw wrongModule(module, 'its default export is no function that opens locks');
}

function wrongModule(module: string, problem: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', `${module}: ${problem}`);
}

function isBackend(value: unknown): value is LockBackend {
  return typeof value === 'object' && value !== null && 'attempt' in value && 'capabilities' in value;
}

function isOther(value: unknown): value is OtherLocks {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<OtherLocks>).acquire === 'function'
  );
}

function ofBackend({ backend, close: closeClient }: OpenedBackend): ExaminedLocks {
  const locks = createLocks(backend);
  const { features } = backend.capabilities;
  return {
    name: backend.name,
    isOther: false,
    capabilities: backend.capabilities,
    acquire: (name, mode, limits) => acquireIn(locks, name, mode, limits),
    ...(features.includes('list') && { list: (prefix) => namesIn(locks, prefix) }),
    ...(features.includes('force-release') && { forceRelease: (name) => locks.forceRelease(name) }),
    async close() {
      await locks.close();
      await closeClient?.();
    },
  };
}

function acquireIn(locks: LockManager, name: string, mode: LockMode, limits: AcquireLimits): Promise<Lease> {
  switch (mode.kind) {
    case 'exclusive':
      return locks.lock(name).acquire(limits);
    case 'shared':
      return locks.readWriteLock(name).read.acquire(limits);
    case 'permit':
      return locks.semaphore(name, mode.limit).acquire({ ...limits, weight: mode.weight });
    default:
      return mode satisfies never;
  }
}

async function namesIn(locks: LockManager, prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of locks.list(prefix)) names.push(name);
  return names;
}

function ofOther(other: OtherLocks): ExaminedLocks {
  return {
    name: other.name,
    isOther: true,
    capabilities: {
      tenure: 'lease',
      renewal: 'own-client',
      reach: 'network',
      modes: ['exclusive'],
      order: 'none',
      fencing: other.hasTokens === true ? 'volatile' : 'none',
      ttl: { minMs: 1, stepMs: 1 },
      features: [],
    },
    async acquire(name, _mode, { ttlMs, waitMs }): Promise<OtherLease | undefined> {
      return await other.acquire(name, { ttlMs, waitMs });
    },
    close: async () => await other.close?.(),
  };
}
