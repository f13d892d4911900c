import { LockError } from '@locks/core';
import {
  invalidArgument,
  matching,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';
import type pg from 'pg';
import { advisoryKey } from '../advisory/advisory-key.ts';
import { codeOf } from '../pool/server-error.ts';
import { checkLockName } from './lock-name.ts';
import { IN_LEASE_TABLE, refuseLeasedName } from './refuse-leased-name.ts';

/** The client that runs your transaction: a `Client` or a `PoolClient` of the package pg. */
export type TransactionClient = Pick<pg.ClientBase, 'query'>;

/** The options of an attempt to lock inside a transaction. */
export interface TransactionLockOptions {
  /**
   * `exclusive`: alone; `shared`: together with other `shared` locks of the same name.
   *
   * @defaultValue `'exclusive'`
   */
  readonly mode?: 'exclusive' | 'shared';
}

/** The options of a lock inside a transaction that waits. */
export interface TransactionWaitOptions extends TransactionLockOptions {
  /**
   * The longest wait for the lock, in milliseconds; `Infinity`: no limit.
   *
   * @defaultValue 10 000
   */
  readonly waitMs?: number;
}

const LOCK_TABLE = {
  mode: optional(oneOf('exclusive', 'shared'), 'exclusive'),
} satisfies OptionTable<TransactionLockOptions>;

const WAIT_TABLE = {
  ...LOCK_TABLE,
  waitMs: optional(
    matching('a number of milliseconds above 0 (tryAdvisoryLockInTransaction() does not wait)', isWait),
    10_000,
  ),
} satisfies OptionTable<TransactionWaitOptions>;

const SAVEPOINT = 'locks_acquire';
/** The longest `lock_timeout`. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

// setup: import { advisoryLockInTransaction } from '@locks/postgres'; import type { PoolClient } from 'pg';
// setup: declare const client: PoolClient;
/**
 * Takes an advisory lock that ends with your transaction: with its `COMMIT`, its `ROLLBACK`, or its connection. It
 * excludes, and is excluded by, the leases of `postgresAdvisoryBackend` of the same name in the same database, but not those
 * of `postgresLeaseBackend`: a name that is held or waited for there in this moment is refused.
 *
 * A failure leaves your transaction as it was, ready for more statements: the wait runs inside a savepoint, and
 * `lock_timeout` gets its earlier value back.
 *
 * @example
 * ```ts
 * await client.query('BEGIN');
 * await advisoryLockInTransaction(client, 'sku:42', { waitMs: 2_000 });
 * await client.query('UPDATE stock SET quantity = quantity - 1 WHERE sku = 42');
 * await client.query('COMMIT');
 * ```
 *
 * @throws LockError `LOCK_TIMEOUT` when it is still held after `waitMs`; `LOCK_INVALID_ARGUMENT` for a bad name or
 * option, or outside of a transaction; `LOCK_CONFLICT` when a lease table of the database has the name; `LOCK_BACKEND` when the
 * server refuses or fails (a deadlock, `statement_timeout`)
 */
export async function advisoryLockInTransaction(
  client: TransactionClient,
  name: string,
  options?: TransactionWaitOptions,
): Promise<void> {
  const { waitMs, mode } = readOptions('advisoryLockInTransaction()', options, WAIT_TABLE);
  const { key, suffix } = lockOf(name, mode);
  // A lock_timeout of 0 means no limit.
  const limit =
    waitMs === Number.POSITIVE_INFINITY ? 0 : Math.max(1, Math.min(Math.ceil(waitMs), MAX_TIMEOUT_MS));
  const previous = await inSavepoint(client, name, waitMs, [
    `SELECT pg_catalog.current_setting('lock_timeout') AS previous`,
    `SET LOCAL lock_timeout = ${limit}`,
    `SELECT pg_catalog.pg_advisory_xact_lock${suffix}('${key}'::bigint)`,
    refuseLeasedName(name),
  ]);
  // A setting made inside a savepoint outlives the savepoint, so the earlier value is set for the rest of the transaction.
  await client
    .query(
      `SELECT pg_catalog.set_config('lock_timeout', '${String(previous[0]?.['previous'])}', true); RELEASE SAVEPOINT ${SAVEPOINT}`,
    )
    .catch((error: unknown) => {
      throw failure(name, error);
    });
}

/**
 * Takes the same lock as {@link advisoryLockInTransaction}, without waiting.
 *
 * @returns whether the transaction has the lock now
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad name or option, or outside of a transaction; `LOCK_CONFLICT` when a lease
 * table of the database has the name; `LOCK_BACKEND`
 */
export async function tryAdvisoryLockInTransaction(
  client: TransactionClient,
  name: string,
  options?: TransactionLockOptions,
): Promise<boolean> {
  const elsewhere = { waitMs: 'advisoryLockInTransaction()' };
  const { mode } = readOptions('tryAdvisoryLockInTransaction()', options, LOCK_TABLE, elsewhere);
  const { key, suffix } = lockOf(name, mode);
  const rows = await inSavepoint(client, name, 0, [
    `SELECT pg_catalog.pg_try_advisory_xact_lock${suffix}('${key}'::bigint) AS taken`,
    refuseLeasedName(name),
    `RELEASE SAVEPOINT ${SAVEPOINT}`,
  ]);
  return rows[0]?.['taken'] === true || rows[0]?.['taken'] === 't';
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Runs statements behind a savepoint in one round trip. Resolves to the rows of the first statement that has any. */
async function inSavepoint(
  client: TransactionClient,
  name: string,
  waitMs: number,
  statements: readonly string[],
): Promise<Rows> {
  try {
    const results: unknown = await client.query([`SAVEPOINT ${SAVEPOINT}`, ...statements].join('; '));
    // A message of several statements gives an array of results.
    return (results as { rows: Rows }[]).find(({ rows }) => rows.length > 0)?.rows ?? [];
  } catch (error) {
    const code = codeOf(error);
    // SAVEPOINT failed outside of a transaction: nothing else has run, and a lock would end with its own statement.
    if (code === '25P01') {
      throw invalidArgument(
        `@locks/postgres: the lock ${JSON.stringify(name)} would end at once, because there is no transaction. Send BEGIN on ` +
          'this client first (not on a pool).',
      );
    }
    // Rolling back the savepoint also releases a lock that was granted in the last moment.
    if (code !== '25P02') {
      await client
        .query(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}; RELEASE SAVEPOINT ${SAVEPOINT}`)
        .catch(() => undefined);
    }
    if (code === '55P03') {
      throw new LockError(
        'LOCK_TIMEOUT',
        `Gave up on ${JSON.stringify(name)} after ${Math.round(waitMs)} ms: it is still held. The transaction goes on without it.`,
        { resource: name, backend: 'postgres', cause: error },
      );
    }
    if (code === IN_LEASE_TABLE) {
      throw new LockError(
        'LOCK_CONFLICT',
        `${JSON.stringify(name)} is in use by postgresLeaseBackend, which an advisory lock does not exclude. Use one of the two ` +
          'for a name: a lock of that backend around the transaction, or advisory locks everywhere.',
        { resource: name, backend: 'postgres', cause: error },
      );
    }
    throw failure(name, error);
  }
}

function failure(name: string, error: unknown): LockError {
  const reason = error instanceof Error ? error.message : String(error);
  return new LockError(
    'LOCK_BACKEND',
    `Could not lock ${JSON.stringify(name)} in the transaction: ${reason}`,
    {
      resource: name,
      backend: 'postgres',
      cause: error,
    },
  );
}

function lockOf(name: string, mode: 'exclusive' | 'shared'): { key: bigint; suffix: string } {
  return { key: advisoryKey(checkLockName(name)), suffix: mode === 'shared' ? '_shared' : '' };
}

function isWait(value: unknown): value is number {
  return typeof value === 'number' && value > 0;
}
