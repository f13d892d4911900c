import type pg from 'pg';
import type { Answered, Statement, TextRow } from '../driver/postgres-driver.ts';
import { NamedStatement, type PlainValue } from './named-statement.ts';

/** Values as the server writes them, whatever parsers the application has set on its pool. */
const texts: pg.CustomTypesConfig = { getTypeParser: () => (value: string) => value };

/** Sends a statement over a client of pg. */
export function sendTexts(client: pg.ClientBase, statement: Statement, done: Answered): void {
  const { name, text, values } = statement;
  // pg itself writes arrays, and its native client has no `connection`.
  if (name !== undefined && values?.every(isPlain) === true && 'connection' in client) {
    client.query(new NamedStatement(name, text, values, done));
    return;
  }
  const query: pg.QueryArrayConfig = {
    text,
    rowMode: 'array',
    types: texts,
    ...(name !== undefined && { name }),
    ...(values !== undefined && { values: [...values] }),
  };
  client.query(query, (error: Error | null, result?: pg.QueryArrayResult<(string | null)[]>) => {
    // Several statements have an array of results.
    const { rows = [], rowCount = 0 } = (result ?? {}) as { rows?: TextRow[]; rowCount?: number | null };
    done(error, { rows, count: rowCount ?? 0 });
  });
}

function isPlain(value: unknown): value is PlainValue {
  return typeof value !== 'object' || value === null || value instanceof Buffer;
}
