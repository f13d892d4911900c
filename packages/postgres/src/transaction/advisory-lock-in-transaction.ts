import { LockError } from '@locks/core';
import {
  invalidArgument,
  matching,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';
import { advisoryKey } from '../advisory/advisory-key.ts';
import { checkLockName } from './lock-name.ts';
import {
  GRANTED,
  IN_LEASE_TABLE,
  LOCK_NOT_AVAILABLE,
  lockStatement,
  readOutcome,
} from './lock-statements.ts';
import { type RunSql, runnerOf, type SqlClient } from './sql-client.ts';

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

/** The longest `lock_timeout`. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

// setup: import { advisoryLockInTransaction } from '@locks/postgres'; import type { PoolClient } from 'pg';
// setup: declare const client: PoolClient;
/**
 * Takes an advisory lock that ends with your transaction: with its `COMMIT`, its `ROLLBACK`, or its connection. It
 * excludes, and is excluded by, the leases of `postgresAdvisoryBackend` of the same name in the same database, but not those
 * of `postgresLeaseBackend`: a name that is held or waited for there in this moment is refused.
 *
 * A failure leaves your transaction as it was, ready for more statements.
 *
 * @example
 * ```ts
 * await client.query('BEGIN');
 * await advisoryLockInTransaction(client, 'sku:42', { waitMs: 2_000 });
 * await client.query('UPDATE stock SET quantity = quantity - 1 WHERE sku = 42');
 * await client.query('COMMIT');
 * ```
 *
 * @throws LockError `LOCK_TIMEOUT` when it is still held after `waitMs`, `LOCK_CONTENDED` with `waitMs` 0; `LOCK_INVALID_ARGUMENT` for a bad name or
 * option, or outside of a transaction; `LOCK_CONFLICT` when a lease table of the database has the name; `LOCK_BACKEND` when the
 * server refuses or fails (a deadlock, `statement_timeout`)
 */
export async function advisoryLockInTransaction(
  client: SqlClient,
  name: string,
  options?: TransactionWaitOptions,
): Promise<void> {
  const run = runnerOf('advisoryLockInTransaction()', client);
  const { waitMs, mode } = readOptions('advisoryLockInTransaction()', options, WAIT_TABLE);
  const { key, suffix } = lockOf(name, mode);
  // A lock_timeout of 0 means no limit.
  const limitMs =
    waitMs === Number.POSITIVE_INFINITY ? 0 : Math.max(1, Math.min(Math.ceil(waitMs), MAX_TIMEOUT_MS));
  const take = `pg_catalog.pg_advisory_xact_lock${suffix}('${key}'::bigint) IS NOT NULL`;
  const failed = await lock(run, name, lockStatement(name, take, limitMs));
  if (failed === undefined) return;
  throw new LockError(
    waitMs > 0 ? 'LOCK_TIMEOUT' : 'LOCK_CONTENDED',
    `Gave up on ${JSON.stringify(name)} after ${Math.round(waitMs)} ms: it is still held. The transaction goes on without it.`,
    { lockName: name, backend: 'postgres', cause: failed },
  );
}

/**
 * Takes the same lock as {@link advisoryLockInTransaction}, without waiting.
 *
 * @returns whether the transaction has the lock now
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad name or option, or outside of a transaction; `LOCK_CONFLICT` when a lease
 * table of the database has the name; `LOCK_BACKEND`
 */
export async function tryAdvisoryLockInTransaction(
  client: SqlClient,
  name: string,
  options?: TransactionLockOptions,
): Promise<boolean> {
  const run = runnerOf('tryAdvisoryLockInTransaction()', client);
  const elsewhere = { waitMs: 'advisoryLockInTransaction()' };
  const { mode } = readOptions('tryAdvisoryLockInTransaction()', options, LOCK_TABLE, elsewhere);
  const { key, suffix } = lockOf(name, mode);
  const take = `pg_catalog.pg_try_advisory_xact_lock${suffix}('${key}'::bigint)`;
  return (await lock(run, name, lockStatement(name, take, 0))) === undefined;
}

/** Takes the lock. Resolves to `undefined`, or to the error of the server when somebody else holds it. */
async function lock(run: RunSql, name: string, statement: string): Promise<Error | undefined> {
  let outcome: unknown;
  try {
    // The setting must be read by a message of its own: outside of a transaction, statements of one message share one.
    await run(statement);
    outcome = (await run(readOutcome))[0]?.['outcome'];
  } catch (error) {
    if (error instanceof LockError) throw error;
    throw failure(name, error);
  }
  if (outcome === GRANTED) return undefined;
  if (typeof outcome !== 'string' || outcome === '') {
    throw invalidArgument(
      `@locks/postgres: the lock ${JSON.stringify(name)} would end at once, because there is no transaction. Send BEGIN on ` +
        'this client first (not on a pool), or pass the transaction of your library.',
    );
  }
  const code = outcome.slice(0, 5);
  const cause = Object.assign(new Error(outcome.slice(6)), { code });
  if (code === LOCK_NOT_AVAILABLE) return cause;
  if (code !== IN_LEASE_TABLE) throw failure(name, cause);
  throw new LockError(
    'LOCK_CONFLICT',
    `${JSON.stringify(name)} is in use by postgresLeaseBackend, which an advisory lock does not exclude. Use one of the two ` +
      'for a name: a lock of that backend around the transaction, or advisory locks everywhere.',
    { lockName: name, backend: 'postgres', cause },
  );
}

function failure(name: string, error: unknown): LockError {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `Could not lock ${JSON.stringify(name)} in the transaction: ${reason}`;
  return new LockError('LOCK_BACKEND', message, { lockName: name, backend: 'postgres', cause: error });
}

function lockOf(name: string, mode: 'exclusive' | 'shared'): { key: bigint; suffix: string } {
  return { key: advisoryKey(checkLockName(name)), suffix: mode === 'shared' ? '_shared' : '' };
}

function isWait(value: unknown): value is number {
  return typeof value === 'number' && value > 0;
}
