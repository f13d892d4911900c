import {
  clockDifference,
  type Diagnosis,
  error,
  failureOf,
  type Finding,
  found,
  layoutFinding,
  oldVersion,
  warning,
} from '@locks/core/doctor';
import { Connections } from './connections.ts';
import { checkOptions, type MysqlBackendOptions, type MysqlPool } from './options.ts';
import { OwnPool } from './own-pool.ts';
import { SERVER_VERSIONS } from './server-versions.ts';
import { hex } from './state-sql.ts';

const NEARLY = 0.9;
const LEAST_PACKET = 1024 * 1024;
const LEAST_WAIT_SECONDS = 60;

type Variables = Readonly<Record<string, string>>;

/** Runs a query, and gives the texts of its rows. */
type Query = (sql: string) => Promise<readonly (readonly string[])[]>;

const VARIABLES = `SHOW VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', 'wait_timeout',
  'max_allowed_packet', 'tx_isolation', 'transaction_isolation', 'max_connections', 'wsrep_on')`;

// setup: import { examineMysql } from '@locks/mysql/doctor'; import mysql from 'mysql2/promise';
/**
 * Examines the server of the locks, and what its user may do: versions, durability, limits, connections, Galera. No table is made.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of mysql2 as they are
 * @example
 * ```ts
 * const { findings } = await examineMysql(mysql.createPool('mysql://app@db/shop'));
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineMysql(
  source: MysqlPool | string,
  options?: MysqlBackendOptions,
): Promise<Diagnosis> {
  const { pool, url, database, tablePrefix, requestTimeoutMs } = checkOptions(
    source,
    options,
    'examineMysql()',
  );
  const own = url === undefined ? undefined : new OwnPool(url);
  const connections = new Connections(() => pool ?? (own as OwnPool).get(), requestTimeoutMs);
  const query: Query = async (sql) =>
    (await connections.read(sql, requestTimeoutMs)).map((cells) => cells.map(String));
  try {
    const variables = await variablesOf(query, VARIABLES);
    const schema =
      database === undefined ? 'DATABASE()' : `CONVERT(${hex(Buffer.from(database))} USING utf8mb4)`;
    const hasTables = await tablesExist(query, schema, tablePrefix);
    const findings = found(
      versionFinding(variables),
      durabilityFinding(variables),
      packetFinding(variables),
      timeoutFinding(variables),
      isolationFinding(variables),
      galeraFinding(variables),
      await connectionsFinding(query, variables),
      hasTables ? undefined : await tablesFinding(query, schema, tablePrefix),
      await clockDifference('mysql', () => timeOf(query)),
    );
    return { store: 'mysql', version: variables['version'], findings, isUnused: !hasTables, explain };
  } finally {
    await own?.end();
  }
}

function explain(failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  if (codes.some((code) => /^ER_.*ACCESS_?DENIED/.test(code)))
    return error(
      'mysql/privileges',
      message,
      'grant the user SELECT, INSERT, UPDATE, DELETE on the tables, and CREATE unless somebody else makes them',
    );
  if (codes.includes('ER_OPTION_PREVENTS_STATEMENT') || /read[_-]only/i.test(message))
    return error(
      'mysql/read-only',
      message,
      'give the address of the primary, or end read_only on this server',
    );
  return layoutFinding('mysql', failure);
}

async function variablesOf(query: Query, statement: string): Promise<Variables> {
  const rows = await query(statement);
  return Object.fromEntries(rows.map(([name = '', value = '']) => [name.toLowerCase(), value]));
}

/** The first column of the first row. The last column is what {@link Connections.read} wants. */
async function numberOf(query: Query, expression: string): Promise<number> {
  const [[value] = []] = await query(`SELECT ${expression}, @@autocommit`);
  return Number(value);
}

function timeOf(query: Query): Promise<number> {
  return numberOf(query, "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) / 1000");
}

async function tablesExist(query: Query, schema: string, prefix: string): Promise<boolean> {
  const tables = `information_schema.TABLES WHERE TABLE_SCHEMA = ${schema} AND TABLE_NAME = '${prefix}meta'`;
  return (await numberOf(query, `EXISTS (SELECT 1 FROM ${tables})`)) === 1;
}

async function tablesFinding(query: Query, schema: string, prefix: string): Promise<Finding | undefined> {
  const mayCreate = `EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'CREATE')
    OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'CREATE' AND ${schema} LIKE TABLE_SCHEMA)
    OR COALESCE(CURRENT_ROLE(), 'NONE') <> 'NONE'`;
  if ((await numberOf(query, mayCreate)) === 1) return undefined;
  return error(
    'mysql/tables-missing',
    `the tables ${prefix}… do not exist, or this user may not see them, and may not create them`,
    'call prepare() of the locks as a user who may, and grant SELECT, INSERT, UPDATE, DELETE on the tables; or grant CREATE',
  );
}

function versionFinding({ version = '' }: Variables): Finding | undefined {
  const product = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
  return oldVersion('mysql', version, SERVER_VERSIONS[product], product);
}

function durabilityFinding(variables: Variables): Finding | undefined {
  const value = variables['innodb_flush_log_at_trx_commit'];
  if (value === '1') return undefined;
  return warning(
    'mysql/durability',
    `innodb_flush_log_at_trx_commit is ${value}: a power cut loses the grants and tokens of the last second`,
    'SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in the configuration',
  );
}

function packetFinding(variables: Variables): Finding | undefined {
  const bytes = Number(variables['max_allowed_packet']);
  if (bytes >= LEAST_PACKET) return undefined;
  return warning(
    'mysql/max-allowed-packet',
    `max_allowed_packet is ${bytes} bytes: the queue of a name must fit into one packet, and later waiters are refused (LOCK_QUEUE_FULL)`,
    'leave max_allowed_packet at its default, 16 MB or more',
  );
}

function timeoutFinding(variables: Variables): Finding | undefined {
  const seconds = Number(variables['wait_timeout']);
  if (seconds >= LEAST_WAIT_SECONDS) return undefined;
  return warning(
    'mysql/wait-timeout',
    `wait_timeout is ${seconds} s: the server closes connections of the pool that were idle for so long, and the next call on each connects first`,
    'SET GLOBAL wait_timeout = 28800, or give the pool an idleTimeout that is shorter',
  );
}

function isolationFinding(variables: Variables): Finding | undefined {
  const level = variables['transaction_isolation'] ?? variables['tx_isolation'];
  if (level !== 'READ-UNCOMMITTED') return undefined;
  return warning(
    'mysql/isolation',
    'the isolation level is READ UNCOMMITTED: a holder may be told of a loss that is rolled back',
    'set transaction_isolation to any other level for the sessions of the locks',
  );
}

/** MariaDB without Galera has the variable too, MySQL has it not. */
function galeraFinding({ wsrep_on: value }: Variables): Finding | undefined {
  if (value !== 'ON') return undefined;
  return warning(
    'mysql/galera',
    'the server is a node of a Galera cluster (wsrep_on is ON): where several nodes take writes, an update can be lost, and two may hold one lock',
    'let all programs that share the locks write to the same node, and to another one only after that has failed',
  );
}

async function connectionsFinding(query: Query, variables: Variables): Promise<Finding | undefined> {
  const status = await variablesOf(query, "SHOW GLOBAL STATUS LIKE 'Threads_connected'");
  const [used, most] = [Number(status['threads_connected']), Number(variables['max_connections'])];
  if (used < NEARLY * most) return undefined;
  return warning(
    'mysql/connections',
    `${used} of ${most} connections (max_connections) are in use`,
    'raise max_connections, or make the pools smaller',
  );
}
