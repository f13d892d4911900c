import { isLockError } from '@locks/core';
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
import { refuseTransactionPooler } from './advisory/transaction-pooler.ts';
import { ask } from './driver/ask.ts';
import type { Connection, OpeningDriver, OwnConnection } from './driver/postgres-driver.ts';
import { SERVER_VERSIONS } from './server-versions.ts';

const NEARLY = 0.9;
const INSUFFICIENT_PRIVILEGE = '42501';
const READ_ONLY = '25006';
const MAKE_WRITABLE = 'set default_transaction_read_only to off for this role and database';

/** The server's answers about itself, as SQL; `$1` is the schema. */
const FACTS = {
  version: "current_setting('server_version')",
  standby: 'pg_is_in_recovery()',
  read_only: "current_setting('default_transaction_read_only')",
  fsync: "current_setting('fsync')",
  full_page_writes: "current_setting('full_page_writes')",
  synchronous_commit: "current_setting('synchronous_commit')",
  standby_names: "current_setting('synchronous_standby_names')",
  replicas: '(SELECT count(*) FROM pg_stat_replication)',
  connections: '(SELECT sum(numbackends) FROM pg_stat_database)',
  most_connections:
    "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int",
  schema: 'EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)',
  migrated: `EXISTS (SELECT FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
    WHERE nspname = $1 AND relname = 'schema_version')`,
  may_create: `coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1),
    has_database_privilege(current_database(), 'CREATE'))`,
};

/** The texts that the server answered: `t` and `f` for booleans. */
type Facts = Readonly<Record<keyof typeof FACTS, string>>;

/**
 * Examines the server of a lease table, by a driver that nobody else uses, and closes it.
 *
 * @param quoted - the schema of the tables, quoted
 */
export async function examineBy(driver: OpeningDriver, quoted: string): Promise<Diagnosis> {
  const schema = quoted.slice(1, -1);
  const connect = async (): Promise<OwnConnection> => {
    const opened = driver.open('@locks/postgres');
    await opened.connect();
    return opened;
  };
  const connection = await connect();
  try {
    const facts = await factsOf(connection, schema);
    const standby = standbyFinding(facts);
    const isUnused = facts.migrated !== 't';
    const findings = found(
      standby,
      oldVersion('postgres', facts.version, SERVER_VERSIONS.postgres),
      schemaFinding(facts, schema),
      durabilityFinding(facts),
      failoverFinding(facts),
      connectionsFinding(facts),
      await clockDifference('postgres', () => timeOf(connection)),
      standby === undefined && (await poolerFinding(connect)),
      standby === undefined && isUnused && readOnlyFinding(facts),
    );
    return { store: 'postgres', version: facts.version.split(' ')[0], findings, isUnused, explain };
  } finally {
    await connection.end();
    await driver.close();
  }
}

function explain(failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  if (codes.includes('NO_PRIVILEGE') || codes.includes(INSUFFICIENT_PRIVILEGE))
    return error(
      'postgres/privileges',
      message,
      'grant the role USAGE on the schema; SELECT, INSERT, UPDATE, DELETE on its tables; USAGE on its sequences',
    );
  if (codes.includes(READ_ONLY)) return error('postgres/read-only', message, MAKE_WRITABLE);
  return layoutFinding('postgres', failure);
}

async function factsOf(connection: Connection, schema: string): Promise<Facts> {
  const text = `SELECT ${Object.values(FACTS).join(', ')}`;
  const [row = []] = await ask(connection, { text, values: [schema] });
  return Object.fromEntries(Object.keys(FACTS).map((name, column) => [name, row[column]])) as Facts;
}

async function timeOf(connection: Connection): Promise<number> {
  const [[ms] = []] = await ask(connection, { text: 'SELECT extract(epoch FROM clock_timestamp()) * 1000' });
  return Number(ms);
}

/** The finding for a pooler that does not keep a session with its client, as the advisory backend detects it. */
async function poolerFinding(connect: () => Promise<OwnConnection>): Promise<Finding | undefined> {
  try {
    await refuseTransactionPooler(connect);
    return undefined;
  } catch (cause) {
    if (!isLockError(cause, 'LOCK_UNSUPPORTED')) throw cause;
    return warning(
      'postgres/pooler',
      'a pooler lends connections for single transactions (pool_mode = transaction or statement): waiters poll, since LISTEN does not work, and advisory locks are refused',
      'give postgresLeaseBackend `listen: { url }` with a direct address, or set pool_mode = session',
    );
  }
}

function standbyFinding({ standby }: Facts): Finding | undefined {
  if (standby !== 't') return undefined;
  return error(
    'postgres/standby',
    'this server is a standby: it refuses to write',
    'give the address of the primary; with several hosts in the URL, target_session_attrs=read-write',
  );
}

function readOnlyFinding({ read_only }: Facts): Finding | undefined {
  if (read_only === 'off') return undefined;
  return error(
    'postgres/read-only',
    'transactions of this role and database only read: the tables cannot be made',
    MAKE_WRITABLE,
  );
}

function schemaFinding({ migrated, schema, may_create }: Facts, name: string): Finding | undefined {
  if (migrated === 't' || may_create === 't') return undefined;
  return error(
    'postgres/schema-missing',
    schema === 't'
      ? `the tables of the schema "${name}" do not exist, and this role may not create them`
      : `the schema "${name}" does not exist, and this role may not create it`,
    'call prepare() of the locks as a role that may; or grant CREATE',
  );
}

function durabilityFinding(facts: Facts): Finding | undefined {
  const off = (['fsync', 'full_page_writes', 'synchronous_commit'] as const).filter(
    (setting) => facts[setting] === 'off',
  );
  if (off.length === 0) return undefined;
  return warning(
    'postgres/durability',
    `${off.join(', ')} = off: a power cut loses the last grants and tokens, or damages the database`,
    'set them to on; synchronous_commit at least for the role of the locks: ALTER ROLE … SET synchronous_commit = on',
  );
}

function failoverFinding({ replicas, standby_names, synchronous_commit }: Facts): Finding | undefined {
  if (Number(replicas) === 0) return undefined;
  if (standby_names !== '' && synchronous_commit !== 'off' && synchronous_commit !== 'local')
    return undefined;
  return warning(
    'postgres/failover',
    'replication is asynchronous: a failover loses the last grants, and two can hold one lock',
    'set synchronous_standby_names and synchronous_commit = on (Patroni: synchronous_mode_strict), or check the fencing token where the data lives',
  );
}

function connectionsFinding({ connections, most_connections }: Facts): Finding | undefined {
  if (Number(connections) < NEARLY * Number(most_connections)) return undefined;
  return warning(
    'postgres/connections',
    `${connections} of ${most_connections} connections (max_connections) are in use`,
    'raise max_connections, make the pools smaller, or put a pooler in front',
  );
}
