import { NoAnswerError } from '@locks/core/backend';
import type pg from 'pg';
import {
  afterReading,
  processIdOf,
  type StatementDeadline,
  type StatementResult,
} from './postgres-statements.ts';
import { queryTexts } from './text-query.ts';

/** Runs one statement on a dedicated connection, and waits for the answer until the deadline, or `limitMs` at most. */
export function queryConnection(
  client: pg.Client,
  text: string,
  values: unknown[],
  call: StatementDeadline,
  limitMs: number,
): Promise<StatementResult> {
  return new Promise((resolve, reject) => {
    const sentAt = call.now();
    const answerMs = Math.max(1, Math.min(call.deadline - sentAt, limitMs));
    const timer = setTimeout(() => afterReading(() => reject(new NoAnswerError(answerMs))), answerMs);
    queryTexts(client, { text, values }, (error, result) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve({ rows: [], count: 0, ...result, sentAt, processId: processIdOf(client) });
    });
  });
}
