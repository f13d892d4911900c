import { LockError } from '@locks/core';
import type pg from 'pg';
import { advisoryKey } from '../advisory/advisory-key.ts';
import { checkLockName, invalid, show } from './lock-name.ts';

/** The client that runs your transaction: a `Client` or a `PoolClient` of the package pg. */
export type TransactionClient = Pick<pg.ClientBase, 'query'>;

export interface TransactionLockOptions {
  /**
   * `exclusive`: alone; `shared`: together with other `shared` ones of the same name.
   *
   * @defaultValue `'exclusive'`
   */
  readonly mode?: 'exclusive' | 'shared';
}

export interface TransactionWaitOptions extends TransactionLockOptions {
  /**
   * How long to wait for the lock, in milliseconds; `Infinity` for as long as it takes.
   *
   * @defaultValue 10 000
   */
  readonly waitMs?: number;
}

const SAVEPOINT = 'locks_acquire';
/** The longest `lock_timeout`. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Takes an advisory lock that ends with your transaction: with its `COMMIT`, its `ROLLBACK`, or its connection. It
 * excludes, and is excluded by, the leases of `postgresAdvisoryBackend` of the same name in the same database.
 *
 * A failure leaves your transaction as it was, ready for more statements: the wait runs inside a savepoint, and
 * `lock_timeout` is put back.
 *
 * @example
 * ```ts
 * await client.query('BEGIN');
 * await acquireInTransaction(client, 'sku:42', { waitMs: 2_000 });
 * await client.query('UPDATE stock SET quantity = quantity - 1 WHERE sku = 42');
 * await client.query('COMMIT');
 * ```
 *
 * @throws LockError `LOCK_TIMEOUT` when it is still held after `waitMs`; `LOCK_INVALID_ARGUMENT` for a bad name or
 * option, or outside of a transaction; `LOCK_BACKEND` when the server refuses or fails (a deadlock, `statement_timeout`)
 */
export async function acquireInTransaction(
  client: TransactionClient,
  name: string,
  options: TransactionWaitOptions = {},
): Promise<void> {
  const { key, suffix } = checked(name, options);
  const waitMs = checkWait(options.waitMs ?? 10_000);
  // For lock_timeout 0 means for ever.
  const limit =
    waitMs === Number.POSITIVE_INFINITY ? 0 : Math.max(1, Math.min(Math.ceil(waitMs), LONGEST_MS));
  const previous = await inSavepoint(client, name, waitMs, [
    `SELECT current_setting('lock_timeout') AS previous`,
    `SET LOCAL lock_timeout = ${limit}`,
    `SELECT pg_advisory_xact_lock${suffix}(${key})`,
  ]);
  // What was set inside the savepoint outlives it. To its own value, for the rest of the transaction.
  await client
    .query(
      `SELECT set_config('lock_timeout', '${String(previous[0]?.['previous'])}', true); RELEASE SAVEPOINT ${SAVEPOINT}`,
    )
    .catch((error: unknown) => {
      throw failure(name, error);
    });
}

/**
 * Like {@link acquireInTransaction}, without waiting.
 *
 * @returns whether the transaction has the lock now
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad name or option, or outside of a transaction; `LOCK_BACKEND`
 */
export async function tryAcquireInTransaction(
  client: TransactionClient,
  name: string,
  options: TransactionLockOptions = {},
): Promise<boolean> {
  const { key, suffix } = checked(name, options);
  const rows = await inSavepoint(client, name, 0, [
    `SELECT pg_try_advisory_xact_lock${suffix}(${key}) AS taken`,
    `RELEASE SAVEPOINT ${SAVEPOINT}`,
  ]);
  return rows[0]?.['taken'] === true || rows[0]?.['taken'] === 't';
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Runs statements behind a savepoint in one round trip; gives the rows of the first that has any. */
async function inSavepoint(
  client: TransactionClient,
  name: string,
  waitMs: number,
  statements: readonly string[],
): Promise<Rows> {
  try {
    const results: unknown = await client.query([`SAVEPOINT ${SAVEPOINT}`, ...statements].join('; '));
    // Several statements give several results.
    return (results as { rows: Rows }[]).find(({ rows }) => rows.length > 0)?.rows ?? [];
  } catch (error) {
    const { code } = error as { code?: unknown };
    // Of SAVEPOINT: nothing else has run, and a lock taken now would end with its own statement.
    if (code === '25P01') {
      throw invalid(
        `the lock ${show(name)} would end at once: there is no transaction. Send BEGIN on this client first (not on a pool)`,
      );
    }
    // A lock that was granted in the last moment goes with the savepoint.
    if (code !== '25P02') {
      await client
        .query(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}; RELEASE SAVEPOINT ${SAVEPOINT}`)
        .catch(() => undefined);
    }
    if (code === '55P03') {
      throw new LockError(
        'LOCK_TIMEOUT',
        `Gave up on ${show(name)} after ${Math.round(waitMs)} ms: it is still held. The transaction goes on without it.`,
        { resource: name, backend: 'postgres', cause: error },
      );
    }
    throw failure(name, error);
  }
}

function failure(name: string, error: unknown): LockError {
  const said = error instanceof Error ? error.message : String(error);
  return new LockError('LOCK_BACKEND', `Could not lock ${show(name)} in the transaction: ${said}`, {
    resource: name,
    backend: 'postgres',
    cause: error,
  });
}

function checked(name: string, options: TransactionLockOptions): { key: bigint; suffix: string } {
  const key = advisoryKey(checkLockName(name));
  const { mode = 'exclusive' } = options;
  if (mode !== 'exclusive' && mode !== 'shared')
    throw invalid(`mode must be 'exclusive' or 'shared', not ${show(mode)}`);
  return { key, suffix: mode === 'shared' ? '_shared' : '' };
}

function checkWait(waitMs: unknown): number {
  if (typeof waitMs === 'number' && waitMs > 0) return waitMs;
  throw invalid(
    `waitMs must be a number of milliseconds above 0, or Infinity, not ${show(waitMs)}. ` +
      'To ask without waiting there is tryAcquireInTransaction',
  );
}
