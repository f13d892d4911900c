import { randomUUID } from 'node:crypto';
import { createLocks, isLockError } from '@locks/core';
import { postgresAdvisoryBackend } from '@locks/postgres';
import pg from 'pg';
import { clockDifference } from './clock-difference.ts';
import { type ExaminedStore, trialFindings, type TrialReading } from './examination.ts';
import { type Diagnosis, error, type Finding, found, warning } from './finding.ts';
import { oldVersion } from './old-version.ts';

const NEARLY = 0.9;
const CONNECT_MS = 5_000;
const INSUFFICIENT_PRIVILEGE = '42501';
const READ_ONLY = '25006';
const MAKE_WRITABLE = 'set default_transaction_read_only to off for this role and database';

const READING: TrialReading = {
  failure({ codes }) {
    if (codes.includes('NO_PRIVILEGE') || codes.includes(INSUFFICIENT_PRIVILEGE))
      return {
        id: 'postgres/privileges',
        severity: 'error',
        toDo: 'grant the role USAGE on the schema; SELECT, INSERT, UPDATE, DELETE on its tables; USAGE on its sequences',
      };
    if (codes.includes('NEWER_SCHEMA'))
      return {
        id: 'postgres/schema-newer',
        severity: 'error',
        toDo: 'upgrade the programs with this version of @locks/postgres, or give them another schema',
      };
    if (codes.includes(READ_ONLY))
      return {
        id: 'postgres/read-only',
        severity: 'error',
        toDo: MAKE_WRITABLE,
      };
    return undefined;
  },
};

/** The server's answers about itself; counts are texts. */
interface Facts {
  readonly version: string;
  readonly standby: boolean;
  readonly read_only: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly standby_names: string;
  readonly replicas: string;
  readonly connections: string;
  readonly most_connections: string;
  readonly schema: boolean;
  readonly migrated: boolean;
  readonly may_create: boolean;
}

const FACTS = `SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
  current_setting('default_transaction_read_only') AS read_only,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') AS standby_names,
  (SELECT count(*) FROM pg_stat_replication)::text AS replicas,
  (SELECT sum(numbackends) FROM pg_stat_database)::text AS connections,
  (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)::text AS most_connections,
  EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS schema,
  EXISTS (SELECT FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
    WHERE nspname = $1 AND relname = 'schema_version') AS migrated,
  coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1),
    has_database_privilege(current_database(), 'CREATE')) AS may_create`;

export async function examinePostgres({ url, prefix = 'locks', locks }: ExaminedStore): Promise<Diagnosis> {
  const connectionString = url.text;
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: CONNECT_MS });
  // Every failed call rejects with its error, so the event is ignored.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const facts = await factsOf(client, prefix);
    const standby = standbyFinding(facts);
    const findings = found(
      standby,
      oldVersion('postgres', 'postgres', facts.version),
      schemaFinding(facts, prefix),
      durabilityFinding(facts),
      failoverFinding(facts),
      connectionsFinding(facts),
      await clockDifference('postgres', () => timeOf(client)),
    );
    if (standby === undefined) {
      findings.push(...found(await poolerFinding(connectionString)));
      // A trial would create missing tables.
      if (!facts.migrated) findings.push(...found(readOnlyFinding(facts)));
      else findings.push(...(await trialFindings('postgres', locks, READING)));
    }
    return { store: 'postgres', version: facts.version.split(' ')[0], findings };
  } finally {
    await client.end();
  }
}

async function factsOf(client: pg.Client, schema: string): Promise<Facts> {
  const { rows } = await client.query<Facts>(FACTS, [schema]);
  const [facts] = rows;
  if (facts === undefined) throw new Error('PostgreSQL gave no row');
  return facts;
}

async function timeOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ ms: string }>(
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::text AS ms',
  );
  return Number(rows[0]?.ms);
}

/** The finding for a pooler that does not keep a session with its client, as the advisory backend detects it. */
async function poolerFinding(connectionString: string): Promise<Finding | undefined> {
  const locks = createLocks(postgresAdvisoryBackend({ connectionString }));
  try {
    await (await locks.lock(`locks-doctor-${randomUUID()}`).acquire({ waitMs: CONNECT_MS })).release();
    return undefined;
  } catch (cause) {
    if (!isLockError(cause, 'LOCK_UNSUPPORTED') || !cause.message.includes('pooler')) throw cause;
    return warning(
      'postgres/pooler',
      'a pooler lends connections for single transactions (pool_mode = transaction or statement): waiters poll, since LISTEN does not work, and advisory locks are refused',
      'give postgresLeaseBackend `listen: { connectionString }` with a direct address, or set pool_mode = session',
    );
  } finally {
    await locks.close();
  }
}

function standbyFinding({ standby }: Facts): Finding | undefined {
  if (!standby) return undefined;
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
  if (migrated || may_create) return undefined;
  return error(
    'postgres/schema-missing',
    schema
      ? `the tables of the schema "${name}" do not exist, and this role may not create them`
      : `the schema "${name}" does not exist, and this role may not create it`,
    'run migrateLeaseSchema(), or the SQL of leaseSchemaSql(), as a role that may; or grant CREATE',
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
