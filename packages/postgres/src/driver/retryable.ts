import { NoAnswerError } from '@locks/core/backend';
import { OpenTransactionError } from './open-transaction.ts';
import { NoConnectionError } from './postgres-statements.ts';
import { codeOf, isStrangeStatement } from './server-error.ts';

/**
 * SQL states of temporary refusals: a server that starts, stops, fails over or is full; a cancelled statement; conflicting
 * transactions. Classes 08 (connection), 53 (resources) and 57P (operator).
 */
const TEMPORARY_STATE = /^(?:08|53|57P|57014$|57000$|40001$|40P01$|55P03$|25006$)/;
/** Codes of Node.js, and those of postgres.js and Bun for a connection that was lost or could not be made. */
const TEMPORARY_CODE =
  /^(?:ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EAI_AGAIN|ENOTFOUND|CONNECTION_(?:CLOSED|DESTROYED|ENDED)|CONNECT_TIMEOUT|ERR_POSTGRES_CONNECTION_\w+)$/;
const TEMPORARY_MESSAGE =
  /^(?:the connection was (?:closed|cut)|no connection was made in time|Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed)/;

/** Whether the same statement may succeed when it is repeated. An unknown error is not retryable. */
export function isRetryablePostgresError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof NoConnectionError || error instanceof NoAnswerError) return true;
  if (error instanceof OpenTransactionError) return true;
  if (isStrangeStatement(error)) return true;
  const code = codeOf(error);
  if (TEMPORARY_STATE.test(code) || TEMPORARY_CODE.test(code)) return true;
  // Node.js throws an aggregate when it tried several addresses and each of them failed.
  if (error instanceof AggregateError) return error.errors.some(isRetryablePostgresError);
  return TEMPORARY_MESSAGE.test(error.message);
}
