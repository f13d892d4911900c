import { type MariadbServer, startMariadb } from '@locks/test-servers';
import mysql, { type Connection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createStatements, tablesOf } from '../../../packages/mysql/src/tables.ts';
import { SimulatedMysql, type SqlResult, type SqlRow } from '../../src/mysql/simulated-mysql.ts';
import { LockCode } from '../../src/process/lock-code.ts';
import { Simulation } from '../../src/simulation.ts';
import { drawPlan } from '../../src/workload/draw-plan.ts';

/** `LOCKS_STEPS=500` replays so many runs; `LOCKS_SEED=n` begins with another. */
const RUNS = Number(process.env['LOCKS_STEPS'] ?? 25);
const SEED = Number(process.env['LOCKS_SEED'] ?? 1);
const TABLES = { locks_locks: 'name', locks_clients: 'client', locks_meta: 'item' };

/** A statement of a run, and what the simulated server made of it. */
interface Executed {
  readonly sql: string;
  readonly micros: number;
  readonly result: SqlResult | { readonly errno: number };
  readonly tables: Readonly<Record<string, readonly string[]>>;
}

let server: MariadbServer;
let connection: Connection;
beforeAll(async () => {
  server = await startMariadb();
  connection = await mysql.createConnection(server.url);
  for (const statement of createStatements(tablesOf('locks_', undefined))) await connection.query(statement);
});
afterAll(async () => {
  connection.destroy();
  await server.stop();
});

test(`every statement of ${RUNS} runs does on a real server what it does on the simulated one`, async () => {
  const code = await LockCode.load('mysql');
  const kinds = new Map<string, number>();
  let errors = 0;
  for (let seed = SEED; seed < SEED + RUNS; seed += 1) {
    // After a failover the simulated server has lost what the real one has.
    const plan = { ...drawPlan('mysql', seed), storeFaults: [] };
    const statements = await executedIn(() => new Simulation(code, plan).run());
    await empty();
    for (const { sql, micros, result, tables } of statements) {
      await connection.query(`SET timestamp = ${(micros / 1e6).toFixed(6)}`);
      const found = await real(sql);
      expect(comparable(sql, found), `seed ${seed}: ${sql}`).toEqual(comparable(sql, result));
      if (!sql.startsWith('SELECT'))
        expect(await tablesNow(), `the tables in seed ${seed} after: ${sql}`).toEqual(tables);
      const [kind = ''] = /^\w+ (INTO |FROM )?`\w+`/.exec(sql) ?? [];
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if ('errno' in result) errors += 1;
    }
  }
  expect([...kinds.keys()]).toEqual(
    expect.arrayContaining([
      'INSERT INTO `locks_locks`',
      'UPDATE `locks_locks`',
      'DELETE FROM `locks_clients`',
    ]),
  );
  expect(errors).toBeGreaterThan(0);
}, 120_000);

/** The statements that reach the simulated server meanwhile, in their order. */
async function executedIn(run: () => Promise<unknown>): Promise<readonly Executed[]> {
  const all: Executed[] = [];
  const { execute } = SimulatedMysql.prototype;
  const spy = vi.spyOn(SimulatedMysql.prototype, 'execute').mockImplementation(function (
    this: SimulatedMysql,
    sql,
  ) {
    const { micros } = this;
    const note = (result: Executed['result']): void =>
      void all.push({ sql, micros, result, tables: rowsOf(this) });
    try {
      const result = execute.call(this, sql);
      note(result);
      return result;
    } catch (error) {
      note({ errno: (error as { readonly errno: number }).errno });
      throw error;
    }
  });
  await run();
  spy.mockRestore();
  return all;
}

function rowsOf(simulated: SimulatedMysql): Executed['tables'] {
  return Object.fromEntries(
    Object.keys(TABLES).map((table) => [table, simulated.rows(table).map(textOfRow).sort()]),
  );
}

function textOfRow(row: SqlRow): string {
  return JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function empty(): Promise<void> {
  await connection.query('DELETE FROM locks_locks');
  await connection.query('DELETE FROM locks_clients');
  await connection.query("UPDATE locks_meta SET value = 0 WHERE item IN ('token', 'swept_at')");
}

type Cells = readonly (Buffer | null)[];

async function real(sql: string): Promise<Executed['result']> {
  const typeCast = (field: { buffer(): Buffer | null }): Buffer | null => field.buffer();
  try {
    const [found] = await connection.query({ sql, rowsAsArray: true, typeCast });
    if (Array.isArray(found))
      return {
        rows: (found as unknown as readonly Cells[]).map((cells) =>
          cells.map((cell) => cell && latin1(cell)),
        ),
      };
    const { affectedRows: affected, insertId } = found;
    return { affected, insertId };
  } catch (error) {
    return { errno: (error as { readonly errno: number }).errno };
  }
}

function latin1(bytes: Buffer): string {
  return bytes.toString('latin1');
}

/** What the adapter reads of an answer; the order of rows is up to a server, and its `max_allowed_packet` too. */
function comparable(sql: string, result: Executed['result']): unknown {
  if ('errno' in result) return result;
  if ('rows' in result)
    return result.rows
      .map((cells) => cells.map(String))
      .map((cells) => (cells[0] === '0' ? cells.with(2, 'packet') : cells).join(' '))
      .sort();
  return sql.startsWith('INSERT') ? result.insertId : result;
}

/** The tables of the real server, as {@link rowsOf} gives those of the simulated one. */
async function tablesNow(): Promise<Executed['tables']> {
  const tables: Record<string, readonly string[]> = {};
  for (const table of Object.keys(TABLES)) {
    const [rows] = await connection.query(`SELECT * FROM ${table}`);
    tables[table] = (rows as readonly Record<string, Buffer | number>[])
      .map((row) =>
        textOfRow(
          Object.fromEntries(
            Object.entries(row).map(([name, cell]) => [
              name,
              Buffer.isBuffer(cell) ? latin1(cell) : Number(cell),
            ]),
          ),
        ),
      )
      .sort();
  }
  return tables;
}
