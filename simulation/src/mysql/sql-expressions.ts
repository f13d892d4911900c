import { SqlError } from './sql-error.ts';
import type { SqlReader } from './sql-reader.ts';

/** Bytes are texts with one character for each. Times and counts are whole numbers below 2^53. */
export type SqlValue = number | string | null;

/** What an expression is evaluated with. */
export interface SqlScope {
  /** The server's time in microseconds: one for the whole statement. */
  readonly now: number;
  /** The numbers and bytes that stand in the statement. */
  readonly literals: readonly SqlValue[];
  /** What `LAST_INSERT_ID` was given last. */
  lastInsertId: number;
  /** A column of the tables in question; `undefined`: there is none. */
  column(name: string, table: string | undefined): SqlValue | undefined;
  /** The value that a row would have had that could not be inserted. */
  wouldBe(name: string): SqlValue;
}

export type SqlExpression = (scope: SqlScope) => SqlValue;

/** The largest BIGINT, rounded up as numbers of JavaScript are. */
const MAX_BIGINT = 2 ** 63;
/** The error of a sum that is out of range. */
const OUT_OF_RANGE = 1690;

const VARIABLES: Readonly<Record<string, SqlValue>> = {
  '@@max_allowed_packet': 16_777_216,
  '@@autocommit': 1,
};

/** OR binds least, then AND, then comparisons, then sums. */
export function readExpression(reader: SqlReader): SqlExpression {
  let left = readAnd(reader);
  while (reader.accepts('OR')) {
    const [a, b] = [left, readAnd(reader)];
    left = (scope) => (isTrue(a(scope)) || isTrue(b(scope)) ? 1 : 0);
  }
  return left;
}

function readAnd(reader: SqlReader): SqlExpression {
  let left = readComparison(reader);
  while (reader.accepts('AND')) {
    const [a, b] = [left, readComparison(reader)];
    left = (scope) => (isTrue(a(scope)) && isTrue(b(scope)) ? 1 : 0);
  }
  return left;
}

const COMPARISONS: Readonly<Record<string, (a: number | string, b: number | string) => boolean>> = {
  '=': (a, b) => a === b,
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
};

function readComparison(reader: SqlReader): SqlExpression {
  const left = readSum(reader);
  if (reader.accepts('IN')) {
    const among = reader.list(() => readSum(reader));
    return (scope) => {
      const value = left(scope);
      return among.some((one) => one(scope) === value) ? 1 : 0;
    };
  }
  for (const [symbol, compare] of Object.entries(COMPARISONS)) {
    if (!reader.accepts(symbol)) continue;
    const right = readSum(reader);
    return (scope) => {
      const [a, b] = [left(scope), right(scope)];
      // Numbers and bytes are never compared with each other here, and NULL equals nothing.
      return a !== null && b !== null && typeof a === typeof b && compare(a, b) ? 1 : 0;
    };
  }
  return left;
}

function readSum(reader: SqlReader): SqlExpression {
  let left = readValue(reader);
  for (;;) {
    const sign = reader.accepts('+') ? 1 : reader.accepts('-') ? -1 : 0;
    if (sign === 0) return left;
    const [a, b] = [left, readValue(reader)];
    left = (scope) => {
      const sum = Number(a(scope)) + sign * Number(b(scope));
      if (sum > MAX_BIGINT) throw new SqlError(OUT_OF_RANGE, 'BIGINT value is out of range');
      return sum;
    };
  }
}

function readValue(reader: SqlReader): SqlExpression {
  if (reader.accepts('(')) {
    const inner = readExpression(reader);
    reader.expects(')');
    return inner;
  }
  const { kind, text } = reader.take();
  switch (kind) {
    case 'literal': {
      const place = Number(text);
      return (scope) => scope.literals[place] ?? null;
    }
    case 'text':
      return () => text;
    case 'word': {
      if (text === 'CASE') return readCase(reader);
      if (text.startsWith('@@')) return () => VARIABLES[text] ?? null;
      if (reader.accepts('(')) return readCall(reader, text);
      return readColumn(reader, text);
    }
    default:
      throw reader.unreadable();
  }
}

function readColumn(reader: SqlReader, first: string): SqlExpression {
  const [name, table] = reader.accepts('.') ? [reader.take().text, first] : [first, undefined];
  return (scope) => {
    const value = scope.column(name, table);
    if (value === undefined) throw new Error(`the simulated MySQL has no column ${table ?? ''}.${name} here`);
    return value;
  };
}

function readCase(reader: SqlReader): SqlExpression {
  const of = readExpression(reader);
  const cases: (readonly [when: SqlExpression, then: SqlExpression])[] = [];
  while (reader.accepts('WHEN')) {
    const when = readExpression(reader);
    reader.expects('THEN');
    cases.push([when, readExpression(reader)]);
  }
  reader.expects('END');
  return (scope) => {
    const value = of(scope);
    const found = cases.find(([when]) => when(scope) === value);
    return found === undefined ? null : found[1](scope);
  };
}

type SqlFunction = (scope: SqlScope, args: readonly SqlExpression[]) => SqlValue;

const FUNCTIONS: Readonly<Record<string, SqlFunction>> = {
  IF: (scope, [condition, yes, no]) => (isTrue(condition?.(scope) ?? null) ? yes : no)?.(scope) ?? null,
  GREATEST: (scope, args) => Math.max(...args.map((arg) => Number(arg(scope)))),
  LAST_INSERT_ID: (scope, [value]) => (scope.lastInsertId = Number(value?.(scope))),
  CONCAT: (scope, args) => args.map((arg) => arg(scope)).join(''),
  LEFT: (scope, [bytes, count]) => String(bytes?.(scope)).slice(0, Number(count?.(scope))),
  RIGHT: (scope, [bytes, count]) => {
    const [text, length] = [String(bytes?.(scope)), Number(count?.(scope))];
    return text.slice(Math.max(0, text.length - length));
  },
};

function readCall(reader: SqlReader, name: string): SqlExpression {
  if (name === 'VALUES') {
    const column = reader.take().text;
    reader.expects(')');
    return (scope) => scope.wouldBe(column);
  }
  const args: SqlExpression[] = [];
  if (!reader.accepts(')')) {
    do args.push(readExpression(reader));
    while (reader.accepts(','));
    reader.expects(')');
  }
  // Microseconds since 1970: the only way in which the statements ask for the time.
  if (name === 'TIMESTAMPDIFF') return (scope) => scope.now;
  if (name === 'UTC_TIMESTAMP') return () => null;
  const call = FUNCTIONS[name];
  if (call === undefined) throw new Error(`the simulated MySQL has no function ${name}`);
  return (scope) => call(scope, args);
}

export function isTrue(value: SqlValue): boolean {
  return value !== null && Number(value) !== 0;
}
