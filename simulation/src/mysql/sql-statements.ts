import { readExpression, type SqlExpression } from './sql-expressions.ts';
import { SqlReader } from './sql-reader.ts';

/** `column = expression`, carried out one after another: each sees what those before it have set. */
export type SqlAssignment = readonly [column: string, value: SqlExpression];

/** Where the rows of a query come from. */
export type SqlSource =
  | { readonly kind: 'table'; readonly table: string; readonly alias: string }
  | { readonly kind: 'rows'; readonly rows: readonly SqlQuery[]; readonly alias: string };

export interface SqlQuery {
  readonly values: readonly SqlExpression[];
  /** `AS name`, where there is one. */
  readonly names: readonly (string | undefined)[];
  readonly from: readonly SqlSource[];
  readonly where: SqlExpression | undefined;
  readonly orderBy: string | undefined;
  readonly limit: SqlExpression;
}

export type SqlStatement =
  | { readonly kind: 'select'; readonly queries: readonly SqlQuery[]; readonly limit: SqlExpression }
  | {
      readonly kind: 'insert';
      readonly table: string;
      readonly columns: readonly string[];
      readonly rows: SqlQuery;
      readonly otherwise: readonly SqlAssignment[];
    }
  | {
      readonly kind: 'update';
      readonly table: string;
      readonly set: readonly SqlAssignment[];
      readonly where: SqlExpression;
    }
  | {
      readonly kind: 'delete';
      readonly table: string;
      readonly where: SqlExpression;
      readonly limit: SqlExpression;
    }
  | { readonly kind: 'commit' };

const NO_LIMIT: SqlExpression = () => Infinity;

/** Reads a statement of `@locks/mysql` without its literals. Another one is an error. */
export function readStatement(template: string): SqlStatement {
  const reader = new SqlReader(template);
  const statement = readAny(reader);
  if (!reader.isAtEnd) throw reader.unreadable();
  return statement;
}

function readAny(reader: SqlReader): SqlStatement {
  if (reader.accepts('INSERT', 'INTO')) return readInsert(reader);
  if (reader.accepts('UPDATE')) {
    const table = reader.name();
    reader.expects('SET');
    const set = readAssignments(reader);
    reader.expects('WHERE');
    return { kind: 'update', table, set, where: readExpression(reader) };
  }
  if (reader.accepts('DELETE', 'FROM')) {
    const table = reader.name();
    reader.expects('WHERE');
    return { kind: 'delete', table, where: readExpression(reader), limit: readLimit(reader) };
  }
  if (reader.accepts('COMMIT')) return { kind: 'commit' };
  const queries = readQueries(reader);
  return { kind: 'select', queries, limit: readLimit(reader) };
}

function readInsert(reader: SqlReader): SqlStatement {
  const table = reader.name();
  const columns = reader.list(() => reader.name());
  const rows = reader.accepts('VALUES') ? readRow(reader) : readQuery(reader);
  // Other statements of the same moment do not exist here: they run one after another.
  reader.accepts('LOCK', 'IN', 'SHARE', 'MODE');
  reader.expects('ON', 'DUPLICATE', 'KEY', 'UPDATE');
  return { kind: 'insert', table, columns, rows, otherwise: readAssignments(reader) };
}

function readRow(reader: SqlReader): SqlQuery {
  const values = reader.list(() => readExpression(reader));
  return { values, names: [], from: [], where: undefined, orderBy: undefined, limit: NO_LIMIT };
}

function readQueries(reader: SqlReader): SqlQuery[] {
  const queries = [readQuery(reader)];
  while (reader.accepts('UNION', 'ALL')) queries.push(readQuery(reader));
  return queries;
}

function readQuery(reader: SqlReader): SqlQuery {
  // With parentheses a limit belongs to this query alone, without to all.
  const isEnclosed = reader.accepts('(');
  reader.expects('SELECT');
  const values: SqlExpression[] = [];
  const names: (string | undefined)[] = [];
  do {
    values.push(readExpression(reader));
    names.push(reader.accepts('AS') ? reader.name() : undefined);
  } while (reader.accepts(','));
  const from: SqlSource[] = [];
  if (reader.accepts('FROM'))
    do from.push(readSource(reader));
    while (reader.accepts(','));
  const where = reader.accepts('WHERE') ? readExpression(reader) : undefined;
  const orderBy = reader.accepts('ORDER', 'BY') ? reader.name() : undefined;
  const limit = isEnclosed ? readLimit(reader) : NO_LIMIT;
  if (isEnclosed) reader.expects(')');
  return { values, names, from, where, orderBy, limit };
}

const AFTER_SOURCE = ['WHERE', 'ORDER', 'LIMIT', 'LOCK', 'UNION'];

function readSource(reader: SqlReader): SqlSource {
  if (reader.accepts('(')) {
    const rows = readQueries(reader);
    reader.expects(')');
    return { kind: 'rows', rows, alias: reader.name() };
  }
  const table = reader.name();
  const hasAlias = reader.isNextWord && !AFTER_SOURCE.some((word) => reader.isNext(word));
  return { kind: 'table', table, alias: hasAlias ? reader.name() : table };
}

function readAssignments(reader: SqlReader): SqlAssignment[] {
  const assignments: SqlAssignment[] = [];
  do {
    const column = reader.name();
    reader.expects('=');
    assignments.push([column, readExpression(reader)]);
  } while (reader.accepts(','));
  return assignments;
}

function readLimit(reader: SqlReader): SqlExpression {
  return reader.accepts('LIMIT') ? readExpression(reader) : NO_LIMIT;
}
