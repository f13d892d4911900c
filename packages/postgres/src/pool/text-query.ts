import type pg from 'pg';

/** Values as the server writes them, whatever parsers the application has set on its pool. */
const texts: pg.CustomTypesConfig = { getTypeParser: () => (value: string) => value };

export type TextRow = readonly (string | null)[];

export interface TextResult {
  readonly rows: readonly TextRow[];
  /** The number of rows that the statement returned or changed. */
  readonly count: number;
}

/** Sends one statement by pg's own query. */
export function queryTexts(
  client: pg.ClientBase,
  statement: { readonly name?: string; readonly text: string; readonly values?: unknown[] },
  done: (error: Error | null | undefined, result?: TextResult) => void,
): void {
  const query: pg.QueryArrayConfig = { ...statement, rowMode: 'array', types: texts };
  client.query(query, (error: Error | null, result?: pg.QueryArrayResult<(string | null)[]>) =>
    done(error, result && { rows: result.rows, count: result.rowCount ?? 0 }),
  );
}
