/** What an application has to do about a connection that it returned too early. */
const ADVICE = 'Send COMMIT or ROLLBACK before the connection is returned, also where a query failed.';

/**
 * No connection is free but one with an open transaction of the application. Nothing was sent in the transaction: its ROLLBACK would
 * take a lock back whose holder works.
 */
export class OpenTransactionError extends Error {
  constructor(says?: string) {
    super(
      says ??
        `a connection of the pool was returned with an open transaction, whose ROLLBACK would undo what is sent on it. ${ADVICE}`,
    );
  }
}

/**
 * Asks whether no transaction was open before this statement, by a column `outside` that is 1 or 0. The answer is exact in the simple
 * protocol alone: there a transaction of the statement begins when the statement arrives.
 */
export const ASK_OUTSIDE = `SELECT CASE WHEN pg_catalog.transaction_timestamp() OPERATOR(pg_catalog.=) pg_catalog.statement_timestamp()
  THEN 1 ELSE 0 END AS outside`;

/** The SQL state of a statement in a transaction that has failed. */
export const IN_FAILED_TRANSACTION = '25P02';

/** The pools of which a warning was given. */
const warned = new WeakSet<object>();

/** Warns of a connection that was returned with an open transaction, once for each pool. */
export function warnOfOpenTransaction(pool: object): void {
  if (warned.has(pool)) return;
  warned.add(pool);
  process.emitWarning(
    `A connection of the pool was returned with an open transaction. @locks/postgres passes it over. ${ADVICE}`,
    { code: 'LOCKS_OPEN_TRANSACTION' },
  );
}
