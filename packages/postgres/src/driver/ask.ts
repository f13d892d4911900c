import { answerWithin } from '@locks/core/backend';
import type { Connection, Statement, TextResult, TextRow } from './postgres-driver.ts';
import { noResult, type StatementDeadline, type StatementResult } from './postgres-statements.ts';

/** Runs one statement on a connection and resolves to its rows. */
export async function ask(connection: Connection, statement: Statement): Promise<readonly TextRow[]> {
  const { rows } = await new Promise<TextResult>((resolve, reject) => {
    connection.send(statement, (error, result = noResult) => {
      if (error) reject(error);
      else resolve(result);
    });
  });
  return rows;
}

/** Runs one statement on a connection, and waits for the answer until the deadline, or `limitMs` at most. */
export function askWithin(
  connection: Connection,
  statement: Statement,
  call: StatementDeadline,
  limitMs: number,
): Promise<StatementResult> {
  const sentAt = call.now();
  const answered = new Promise<StatementResult>((resolve, reject) => {
    connection.send(statement, (error, result = noResult) => {
      if (error) reject(error);
      else resolve({ ...result, sentAt, processId: connection.processId });
    });
  });
  return answerWithin(answered, Math.max(1, Math.min(call.deadline - sentAt, limitMs)));
}
