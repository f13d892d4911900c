import { LockError } from '@locks/core';
import type pg from 'pg';
import { takeCleanClient, transactionStatusOf } from '../driver/clean-client.ts';
import {
  ASK_OUTSIDE,
  IN_FAILED_TRANSACTION,
  OpenTransactionError,
  warnOfOpenTransaction,
} from '../driver/open-transaction.ts';
import { type PgliteSession, queryOutside } from '../driver/pglite-outside.ts';
import type { Value } from '../driver/postgres-driver.ts';
import { codeOf, isRefusal } from '../driver/server-error.ts';
import { type RunSql, runnerOf, type SqlClient, type SqlRow } from './sql-client.ts';

/** A connection of postgres.js or Bun. */
interface Unsafe {
  unsafe(text: string, values?: readonly unknown[]): PromiseLike<unknown>;
}

interface ReservedSql extends Unsafe {
  release(): void;
}

/** An instance of postgres.js, or a client of Bun: a pool. */
interface SqlPool extends Unsafe {
  readonly options: { readonly max?: number };
  reserve(): PromiseLike<ReservedSql>;
}

/**
 * The function that runs single statements on a pool, each on a connection that the application has not left in an open
 * transaction. What is no pool runs them as {@link runnerOf} does: in the transaction that it is in.
 */
export function poolRunnerOf(caller: string, client: SqlClient): RunSql {
  if (isPgPool(client)) return named(caller, (text, values) => runOnPool(caller, client, text, values));
  // With one connection the transaction may be the caller's own.
  if (isSqlPool(client) && client.options.max !== 1)
    return named(caller, (text, values) => runReserved(caller, client, text, values));
  return runnerOf(caller, client);
}

/**
 * The function that runs single statements which must not be part of any transaction, on whatever client. A function of the
 * application is trusted.
 */
export function outsideRunnerOf(caller: string, client: SqlClient): RunSql {
  const run = poolRunnerOf(caller, client);
  if (isPglite(client)) {
    return named(caller, async (text, values) => {
      const { columns, rows } = await queryOutside(client, text, values as readonly Value[]);
      return rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at]])));
    });
  }
  if (isPgPool(client) || (isSqlPool(client) && client.options.max !== 1)) return run;
  if (isSqlPool(client)) return named(caller, (text, values) => runReserved(caller, client, text, values));
  if (isUnsafe(client)) {
    return named(caller, async (text, values) => {
      if (await isInside(client)) throw new OpenTransactionError(SAYS_INSIDE);
      return await run(text, values);
    });
  }
  if (!isPgClient(client)) return run;
  return named(caller, async (text, values) => {
    const isOpen = await new Promise<boolean>((resolve) => transactionStatusOf(client).check(resolve));
    if (isOpen) throw new OpenTransactionError(SAYS_INSIDE);
    return await run(text, values);
  });
}

const SAYS_INSIDE = 'the client is in a transaction, whose ROLLBACK would undo what is sent. Pass the pool.';

function named(caller: string, run: RunSql): RunSql {
  return async (text, values) => {
    try {
      return await run(text, values);
    } catch (error) {
      if (!(error instanceof OpenTransactionError)) throw error;
      throw new LockError('LOCK_BACKEND', `${caller}: ${error.message}`, {
        backend: 'postgres',
        cause: error,
      });
    }
  };
}

async function runOnPool(
  caller: string,
  pool: pg.Pool,
  text: string,
  values?: readonly unknown[],
): Promise<readonly SqlRow[]> {
  const client = await new Promise<pg.PoolClient>((resolve, reject) => {
    takeCleanClient(pool, [], (error, taken) => {
      if (taken === undefined) reject(error ?? new Error('the pool gave no connection'));
      else resolve(taken);
    });
  });
  let failure: Error | undefined;
  const note = (error: Error): void => {
    failure = error;
  };
  client.on('error', note);
  try {
    return await runnerOf(caller, client)(text, values);
  } catch (error) {
    if (!isRefusal(error)) failure ??= error as Error;
    throw error;
  } finally {
    client.removeListener('error', note);
    client.release(failure);
  }
}

async function runReserved(
  caller: string,
  sql: SqlPool,
  text: string,
  values?: readonly unknown[],
): Promise<readonly SqlRow[]> {
  const passedOver: ReservedSql[] = [];
  try {
    for (let left = sql.options.max ?? 1; left > 0; left -= 1) {
      const reserved = await sql.reserve();
      passedOver.push(reserved);
      if (!(await isInside(reserved)))
        return await runnerOf(caller, reserved as unknown as SqlClient)(text, values);
      warnOfOpenTransaction(sql);
    }
    throw new OpenTransactionError();
  } finally {
    for (const reserved of passedOver) reserved.release();
  }
}

async function isInside(sql: Unsafe): Promise<boolean> {
  try {
    const [row] = (await sql.unsafe(ASK_OUTSIDE)) as { readonly outside: unknown }[];
    return Number(row?.outside) !== 1;
  } catch (error) {
    if (codeOf(error) === IN_FAILED_TRANSACTION) return true;
    throw error;
  }
}

function isPgPool(client: unknown): client is pg.Pool {
  return has(client, 'connect', 'query') && typeof (client as Partial<pg.Pool>).idleCount === 'number';
}

function isPgClient(client: unknown): client is pg.ClientBase {
  return has(client, 'query') && 'connection' in (client as object);
}

function isUnsafe(client: unknown): client is Unsafe {
  return has(client, 'unsafe');
}

function isSqlPool(client: unknown): client is SqlPool {
  // A transaction and a reserved connection are none.
  if (!has(client, 'unsafe', 'reserve') || has(client, 'savepoint') || has(client, 'release')) return false;
  return typeof (client as Partial<SqlPool>).options === 'object';
}

function isPglite(client: unknown): client is PgliteSession {
  return has(client, 'execProtocol', 'runExclusive');
}

function has(client: unknown, ...methods: readonly string[]): boolean {
  if (client === null || (typeof client !== 'object' && typeof client !== 'function')) return false;
  return methods.every((method) => typeof (client as Record<string, unknown>)[method] === 'function');
}
