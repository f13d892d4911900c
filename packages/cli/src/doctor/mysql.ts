import mysql from 'mysql2/promise';
import { clockDifference } from './clock-difference.ts';
import { type ExaminedStore, trialFindings, type TrialReading } from './examination.ts';
import { type Diagnosis, error, type Finding, found, warning } from './finding.ts';
import { oldVersion } from './old-version.ts';

const NEARLY = 0.9;
const CONNECT_MS = 5_000;
const LEAST_PACKET = 1024 * 1024;
const LEAST_WAIT_SECONDS = 60;

const READING: TrialReading = {
  failure({ message, codes }) {
    if (codes.some((code) => /^ER_.*ACCESS_?DENIED/.test(code)))
      return {
        id: 'mysql/privileges',
        severity: 'error',
        toDo: 'grant the user SELECT, INSERT, UPDATE, DELETE on the tables, and CREATE unless somebody else makes them',
      };
    if (codes.includes('ER_OPTION_PREVENTS_STATEMENT') || /read[_-]only/i.test(message))
      return {
        id: 'mysql/read-only',
        severity: 'error',
        toDo: 'give the address of the primary, or end read_only on this server',
      };
    if (codes.includes('LOCK_UNSUPPORTED'))
      return {
        id: 'mysql/schema-newer',
        severity: 'error',
        toDo: 'upgrade the programs with this version of @locks/mysql, or give them another tablePrefix',
      };
    return undefined;
  },
};

type Variables = Readonly<Record<string, string>>;

const VARIABLES = `SHOW VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', 'wait_timeout',
  'max_allowed_packet', 'tx_isolation', 'transaction_isolation', 'max_connections')`;
const PRIVILEGES = `SELECT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'CREATE')
  OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'CREATE' AND DATABASE() LIKE TABLE_SCHEMA)
  OR COALESCE(CURRENT_ROLE(), 'NONE') <> 'NONE' AS may`;

export async function examineMysql({ url, prefix = 'locks_', locks }: ExaminedStore): Promise<Diagnosis> {
  const connection = await mysql.createConnection({ uri: url.text, connectTimeout: CONNECT_MS });
  // Every failed call rejects with its error, so the event is ignored.
  connection.on('error', () => undefined);
  try {
    const variables = await variablesOf(connection, VARIABLES);
    const hasTables = await tablesExist(connection, prefix);
    const findings = found(
      versionFinding(variables),
      durabilityFinding(variables),
      packetFinding(variables),
      timeoutFinding(variables),
      isolationFinding(variables),
      await connectionsFinding(connection, variables),
      hasTables ? undefined : await tablesFinding(connection, prefix),
      await clockDifference('mysql', () => timeOf(connection)),
    );
    // A trial would create missing tables.
    if (hasTables) findings.push(...(await trialFindings('mysql', locks, READING)));
    return { store: 'mysql', version: variables['version'], findings };
  } finally {
    connection.destroy();
  }
}

async function variablesOf(connection: mysql.Connection, statement: string): Promise<Variables> {
  const [rows] = await connection.query<mysql.RowDataPacket[]>(statement);
  return Object.fromEntries(
    rows.map((row) => [String(row['Variable_name']).toLowerCase(), String(row['Value'])]),
  );
}

async function firstOf(connection: mysql.Connection, sql: string, values: unknown[] = []): Promise<number> {
  const [rows] = await connection.query<mysql.RowDataPacket[]>({ sql, rowsAsArray: true }, values);
  return Number((rows[0] as unknown as readonly unknown[] | undefined)?.[0]);
}

function timeOf(connection: mysql.Connection): Promise<number> {
  return firstOf(
    connection,
    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) / 1000",
  );
}

async function tablesExist(connection: mysql.Connection, prefix: string): Promise<boolean> {
  const sql =
    'SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?';
  return (await firstOf(connection, sql, [`${prefix}meta`])) > 0;
}

async function tablesFinding(connection: mysql.Connection, prefix: string): Promise<Finding | undefined> {
  if ((await firstOf(connection, PRIVILEGES)) === 1) return undefined;
  return error(
    'mysql/tables-missing',
    `the tables ${prefix}… do not exist, or this user may not see them, and may not create them`,
    'run the statements of schemaStatements() as a user who may, and grant SELECT, INSERT, UPDATE, DELETE on the tables; or grant CREATE',
  );
}

function versionFinding({ version = '' }: Variables): Finding | undefined {
  return oldVersion('mysql', /mariadb/i.test(version) ? 'mariadb' : 'mysql', version);
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
    `max_allowed_packet is ${bytes} bytes: the queue of a name must fit into one packet, and later waiters are refused (QUEUE_FULL)`,
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

async function connectionsFinding(
  connection: mysql.Connection,
  variables: Variables,
): Promise<Finding | undefined> {
  const status = await variablesOf(connection, "SHOW GLOBAL STATUS LIKE 'Threads_connected'");
  const [used, most] = [Number(status['threads_connected']), Number(variables['max_connections'])];
  if (used < NEARLY * most) return undefined;
  return warning(
    'mysql/connections',
    `${used} of ${most} connections (max_connections) are in use`,
    'raise max_connections, or make the pools smaller',
  );
}
