import { isStrangeStatement, NoAnswerError, NoConnectionError } from './statements.ts';

/**
 * Refusals that pass: a server that starts, stops, fails over or is full; a statement that was cancelled; transactions
 * that met. Classes 08 (connection), 53 (resources) and 57P (operator).
 */
const passingState = /^(?:08|53|57P|57014$|57000$|40001$|40P01$|55P03$|25006$)/;
const passingCode =
  /^(?:ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EAI_AGAIN|ENOTFOUND)$/;
const passingMessage =
  /^(?:Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed)/;

/** Whether the same statement may succeed if repeated. What is not known is not repeated. */
export function isRetryablePostgresError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof NoConnectionError || error instanceof NoAnswerError) return true;
  if (isStrangeStatement(error)) return true;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && (passingState.test(code) || passingCode.test(code))) return true;
  // Several addresses were tried and each failed.
  if (error instanceof AggregateError) return error.errors.some(isRetryablePostgresError);
  return passingMessage.test(error.message);
}
