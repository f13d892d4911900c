import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Conflict,
  Grant,
  Holder,
  InspectOptions,
  LockBackend,
  RenewItem,
  ResourceState,
  RenewalStatus,
} from '@locks/core/backend';
import { refuseAfterClose } from '@locks/core/backend';
import type { MachineClock } from '@locks/core/machine';
import { nameBytes } from './columns.ts';
import { isRetryableFileError } from './file-error.ts';
import { loadSqlite } from './load-sqlite.ts';
import { openLockFile } from './lock-file.ts';
import { machineClock } from './machine-clock.ts';
import { type CheckedSqliteOptions, checkOptions, type SqliteBackendOptions } from './options.ts';
import { thisClient } from './sqlite-client.ts';
import { PollingWaiters } from './polling-waiters.ts';
import { Steps } from './steps.ts';
import { Transactions } from './transactions.ts';

const capabilities = {
  tenure: 'lease',
  renewal: 'any-client',
  reach: 'host',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 20, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters', 'many'],
} as const satisfies BackendCapabilities;

/** The type of the capabilities of the SQLite backend. */
export type SqliteCapabilities = typeof capabilities;

const RENEW_CHUNK = 256;
const LIST_PAGE = 64;

// setup: import { createLocks } from '@locks/core'; import { sqliteBackend } from '@locks/sqlite';
// setup: declare function work(): Promise<void>;
/**
 * Locks in one SQLite file, shared by all processes of a machine. The file is made and opened at the first call.
 *
 * @example
 * ```ts
 * const locks = createLocks(sqliteBackend('./locks.db'));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @param path - the lock file, on a local disk, made when it is missing. Every process that shares locks names the same file. SQLite keeps two
 * more beside it, with `-wal` and `-shm` at the end of their names, and each process that waits one with `-wake-` and a number.
 * @throws LockError `LOCK_UNSUPPORTED` before Node 22.13; `LOCK_INVALID_ARGUMENT` for a bad option.
 */
export function sqliteBackend(path: string, options?: SqliteBackendOptions): LockBackend<SqliteCapabilities> {
  loadSqlite();
  return new SqliteBackend(checkOptions(path, options), machineClock);
}

/** The backend with its clock given from outside, for tests of other machines' clocks. */
export class SqliteBackend implements LockBackend<SqliteCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'sqlite';
  readonly capabilities = capabilities;
  readonly #transactions: Transactions;
  readonly #waiters: PollingWaiters;

  constructor(options: CheckedSqliteOptions, readClock: () => MachineClock) {
    let clock: MachineClock | undefined;
    const client = thisClient();
    this.#transactions = new Transactions(options.path, () => {
      clock ??= readClock();
      const file = openLockFile(loadSqlite(), options, clock);
      return { file, steps: new Steps(file, client) };
    });
    this.#waiters = new PollingWaiters(this.#transactions, options, client);
    refuseAfterClose(this);
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    return this.#transactions.write(
      call,
      (steps) => steps.attempt(request, enqueue, call),
      (committed) => this.#waiters.attempted(request, enqueue, call, committed),
    );
  }

  attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    return this.#transactions.write(
      call,
      (steps) => steps.attemptMany(requests, call),
      (grants) => grants?.forEach(({ request }) => this.#waiters.left(request, undefined)),
    );
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#waiters.awaitTurn(request, call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    // The waiter leaves the local waiters first, whatever becomes of the write: the next heartbeat removes an id that nobody
    // waits for.
    this.#waiters.left(request, undefined);
    await this.#freeing(request.resource, call, (steps) => steps.abandon(request));
    // The waiter leaves once more after the write: an attempt in flight may have been committed before it.
    this.#waiters.left(request, undefined);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const chunks: Promise<RenewalStatus[]>[] = [];
    // Renewals that are submitted together share a transaction for as long as that does not delay the event loop.
    for (let start = 0; start < items.length; start += RENEW_CHUNK) {
      const chunk = items.slice(start, start + RENEW_CHUNK);
      chunks.push(
        this.#transactions.write(
          call,
          (steps) => chunk.map(({ grant, ttlMs }) => steps.holds.renew(grant, ttlMs)),
          () => {},
        ),
      );
    }
    return (await Promise.all(chunks)).flat();
  }

  release(grant: Grant, call: Call): Promise<'released' | 'not-held'> {
    return this.#freeing(grant.request.resource, call, (steps) => steps.holds.release(grant));
  }

  downgrade(grant: Grant, call: Call): Promise<RenewalStatus> {
    return this.#freeing(grant.request.resource, call, (steps) => steps.holds.downgrade(grant));
  }

  resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    return this.#freeing(resource, call, (steps) => steps.resize(resource, limit));
  }

  inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    return this.#transactions.read(call, (steps) => steps.inspect(resource, options));
  }

  async ping(call: Call): Promise<void> {
    // The ping is a write transaction that writes nothing: a file that can only be read gives no locks.
    await this.#transactions.write(
      call,
      () => {},
      () => {},
    );
  }

  /** Makes the file and its tables, as every first call does; those of slots and results are made by the first call of each. */
  prepare(call: Call): Promise<void> {
    return this.ping(call);
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const wanted = Buffer.from(nameBytes(prefix));
    let from: Uint8Array = wanted;
    for (let inclusive = true; ; inclusive = false) {
      const page = await this.#transactions.read(call, (steps) => {
        const names = steps.resourcesAfter(from, inclusive, LIST_PAGE);
        return names.map((name) => ({ name, state: steps.inspect(Buffer.from(name).toString('utf8')) }));
      });
      for (const { name, state } of page) {
        if (!wanted.equals(name.subarray(0, wanted.length))) return;
        if (state.holders.length + state.waiters.length > 0) yield state;
        from = name;
      }
      if (page.length < LIST_PAGE) return;
    }
  }

  forceRelease(resource: string, expectedId: string | undefined, call: Call): Promise<readonly Holder[]> {
    return this.#freeing(resource, call, (steps) => steps.holds.forceRelease(resource, expectedId));
  }

  isRetryable(error: unknown): boolean {
    return isRetryableFileError(error);
  }

  async close(): Promise<void> {
    this.#waiters.close();
    this.#transactions.close((steps) => steps.queue.leave());
  }

  /** Takes a step that may free capacity, and in the same transaction grants it to waiters of this process. */
  async #freeing<T>(resource: string, call: Call, step: (steps: Steps) => T): Promise<T> {
    const { outcome } = await this.#transactions.write(
      call,
      (steps) => ({ outcome: step(steps), grants: this.#waiters.serve(steps, resource, true) }),
      ({ grants }) => this.#waiters.served(resource, grants),
    );
    return outcome;
  }
}
