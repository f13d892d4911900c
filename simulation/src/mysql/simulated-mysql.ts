import { isTrue, type SqlExpression, type SqlScope, type SqlValue } from './sql-expressions.ts';
import { templateOf } from './sql-tokens.ts';
import {
  readStatement,
  type SqlAssignment,
  type SqlQuery,
  type SqlSource,
  type SqlStatement,
} from './sql-statements.ts';

export type SqlRow = Readonly<Record<string, SqlValue>>;

/** What a statement gives: cells of rows, or how many rows it found and the value of `LAST_INSERT_ID`. */
export type SqlResult =
  | { readonly rows: readonly (readonly SqlValue[])[] }
  | { readonly affected: number; readonly insertId: number };

/** A row as it was before a statement, for a server that loses its last statements. */
interface Undo {
  readonly at: number;
  readonly table: string;
  readonly key: SqlValue;
  readonly before: SqlRow | undefined;
}

const NOTHING: SqlResult = { affected: 0, insertId: 0 };

/** The tables of `@locks/mysql` with their primary keys, as `createStatements` makes them. */
const PRIMARY_KEYS: Readonly<Record<string, string>> = {
  locks_locks: 'name',
  locks_clients: 'client',
  locks_meta: 'item',
};
const SCHEMA_VERSION = 1;

/** Statements that were read before, by their templates. */
const known = new Map<string, SqlStatement>();

/**
 * A server in virtual time that runs the SQL of `@locks/mysql`, and no other. A statement is a transaction, and they run one after
 * another: what collides on a real server is sent again there.
 */
export class SimulatedMysql {
  readonly #micros: () => number;
  readonly #tables = new Map(Object.keys(PRIMARY_KEYS).map((name) => [name, new Map<SqlValue, SqlRow>()]));
  #undo: Undo[] = [];

  /** @param micros - the server's clock: whole microseconds since 1970 */
  constructor(micros: () => number) {
    this.#micros = micros;
    for (const [item, value] of Object.entries({ token: 0, swept_at: 0, version: SCHEMA_VERSION }))
      this.#table('locks_meta').set(item, { item, value });
  }

  /** The server's time. */
  get micros(): number {
    return this.#micros();
  }

  /** Throws a `SqlError` where the server refuses the statement, which then has no effect. */
  execute(sql: string): SqlResult {
    const { text, literals } = templateOf(sql);
    const scope = new StatementScope(this.#micros(), literals);
    const statement = known.get(text) ?? readStatement(text);
    known.set(text, statement);
    switch (statement.kind) {
      case 'select':
        return { rows: this.#all(statement.queries, scope).slice(0, Number(statement.limit(scope))) };
      case 'insert':
        return this.#insert(statement, scope);
      case 'update':
        return this.#update(statement, scope);
      case 'delete':
        return this.#delete(statement, scope);
      case 'commit':
        return NOTHING;
      default:
        return statement satisfies never;
    }
  }

  /** The rows of a table as they are. */
  rows(table: string): readonly SqlRow[] {
    return [...this.#table(table).values()];
  }

  row(table: string, key: string): SqlRow | undefined {
    return this.#table(table).get(key);
  }

  /** Takes back what was written at the time `since` and later. Returns whether that was anything. */
  loseSince(since: number): boolean {
    const lost = this.#undo.filter(({ at }) => at >= since);
    for (const { table, key, before } of lost.toReversed()) {
      if (before === undefined) this.#table(table).delete(key);
      else this.#table(table).set(key, before);
    }
    this.#undo = [];
    return lost.length > 0;
  }

  #insert(
    { table, columns, rows, otherwise }: SqlStatement & { readonly kind: 'insert' },
    scope: StatementScope,
  ): SqlResult {
    const before = this.#table(table);
    const written = new Map<SqlValue, SqlRow>();
    const keyColumn = keyOf(table);
    let affected = 0;
    for (const values of this.#rowsOf(rows, scope)) {
      const row = Object.fromEntries(columns.map((column, index) => [column, values[index] ?? null]));
      const key = row[keyColumn] ?? null;
      const old = written.get(key) ?? before.get(key);
      const inserted = old === undefined ? row : assigned(old, table, otherwise, scope.besideInserted(row));
      written.set(key, inserted);
      affected += old === undefined ? 1 : 2;
    }
    this.#write(table, written, scope.now);
    return { affected, insertId: scope.lastInsertId };
  }

  #update(
    { table, set, where }: SqlStatement & { readonly kind: 'update' },
    scope: StatementScope,
  ): SqlResult {
    const written = new Map<SqlValue, SqlRow>();
    for (const [key, row] of this.#table(table)) {
      const at = scope.at({ [table]: row });
      if (isTrue(where(at))) written.set(key, assigned(row, table, set, scope));
    }
    this.#write(table, written, scope.now);
    return { affected: written.size, insertId: scope.lastInsertId };
  }

  #delete(
    { table, where, limit }: SqlStatement & { readonly kind: 'delete' },
    scope: StatementScope,
  ): SqlResult {
    const found = [...this.#table(table)].filter(([, row]) => isTrue(where(scope.at({ [table]: row }))));
    const gone = new Map(found.slice(0, Number(limit(scope))).map(([key]) => [key, undefined]));
    this.#write(table, gone, scope.now);
    return { affected: gone.size, insertId: 0 };
  }

  #write(table: string, rows: ReadonlyMap<SqlValue, SqlRow | undefined>, at: number): void {
    const stored = this.#table(table);
    for (const [key, row] of rows) {
      this.#undo.push({ at, table, key, before: stored.get(key) });
      if (row === undefined) stored.delete(key);
      else stored.set(key, row);
    }
  }

  #all(queries: readonly SqlQuery[], scope: StatementScope): SqlValue[][] {
    return queries.flatMap((query) => this.#rowsOf(query, scope));
  }

  #rowsOf({ values, from, where, orderBy, limit }: SqlQuery, scope: StatementScope): SqlValue[][] {
    let scopes = [scope.at({})];
    for (const source of from)
      scopes = this.#sourceRows(source, scope).flatMap((row) =>
        scopes.map((outer) => outer.with(source.alias, row)),
      );
    if (where !== undefined) scopes = scopes.filter((one) => isTrue(where(one)));
    if (orderBy !== undefined)
      scopes.sort((a, b) => ((a.column(orderBy) ?? '') < (b.column(orderBy) ?? '') ? -1 : 1));
    return scopes.slice(0, Number(limit(scope))).map((one) => values.map((value) => value(one)));
  }

  #sourceRows(source: SqlSource, scope: StatementScope): readonly SqlRow[] {
    if (source.kind === 'table') return this.rows(source.table);
    const names = source.rows[0]?.names ?? [];
    return this.#all(source.rows, scope).map((cells) =>
      Object.fromEntries(cells.map((cell, index) => [names[index] ?? `${index}`, cell])),
    );
  }

  #table(name: string): Map<SqlValue, SqlRow> {
    const table = this.#tables.get(name);
    if (table === undefined) throw new Error(`the simulated MySQL has no table ${name}`);
    return table;
  }
}

function keyOf(table: string): string {
  return PRIMARY_KEYS[table] as string;
}

/** A row after assignments, each of which sees what those before it have set. */
function assigned(
  row: SqlRow,
  table: string,
  assignments: readonly SqlAssignment[],
  scope: StatementScope,
): SqlRow {
  const copy: Record<string, SqlValue> = { ...row };
  const inside = scope.with(table, copy);
  for (const [column, value] of assignments) copy[column] = (value as SqlExpression)(inside);
  return copy;
}

/** What the expressions of one statement see; the scopes of its rows share what `LAST_INSERT_ID` was given. */
class StatementScope implements SqlScope {
  readonly now: number;
  readonly literals: readonly SqlValue[];
  readonly #shared: { lastInsertId: number };
  readonly #tables: Readonly<Record<string, SqlRow>>;
  readonly #inserted: SqlRow | undefined;

  constructor(
    now: number,
    literals: readonly SqlValue[],
    shared = { lastInsertId: 0 },
    tables: Readonly<Record<string, SqlRow>> = {},
    inserted?: SqlRow,
  ) {
    this.now = now;
    this.literals = literals;
    this.#shared = shared;
    this.#tables = tables;
    this.#inserted = inserted;
  }

  get lastInsertId(): number {
    return this.#shared.lastInsertId;
  }

  set lastInsertId(value: number) {
    this.#shared.lastInsertId = value;
  }

  at(tables: Readonly<Record<string, SqlRow>>): StatementScope {
    return new StatementScope(this.now, this.literals, this.#shared, tables, this.#inserted);
  }

  with(table: string, row: SqlRow): StatementScope {
    return this.at({ ...this.#tables, [table]: row });
  }

  besideInserted(row: SqlRow): StatementScope {
    return new StatementScope(this.now, this.literals, this.#shared, {}, row);
  }

  column(name: string, table?: string): SqlValue | undefined {
    if (table !== undefined) return this.#tables[table]?.[name];
    for (const row of Object.values(this.#tables)) if (name in row) return row[name];
    return undefined;
  }

  wouldBe(name: string): SqlValue {
    return this.#inserted?.[name] ?? null;
  }
}
