// `migrations.js <library>`: five processes start at once and one migrates; then one dies while it migrates. It says what happened.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createLocks } from '@locks/core';
import { postgresLeaseBackend } from '@locks/postgres';
import pg from 'pg';
import { migrators } from './migrators.js';

const [library, table] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: process.env.POSTGRES_URL, max: 4 });
// The server ends the sessions of a database that is gone.
pool.on('error', () => {});

if (table === undefined) await parent();
else await instance();
await pool.end();

/** One instance of the application, as it starts. */
async function instance() {
  const { migrate, end } = await migrators[library](pool, table);
  const locks = createLocks(postgresLeaseBackend(pool));
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
  await locks.lock(`migrations ${table}`).run(migrate, { ttlMs: 2_000, waitMs: 60_000 });
  await locks.close();
  await end?.();
}

async function parent() {
  await pool.query('CREATE TABLE IF NOT EXISTS migrated (table_name text, pid int)');
  const said = { exitCodes: await together(`${library}_together`) };
  said.migratedBy = await countOf(`${library}_together`);
  said.afterDeath = await dying(`${library}_dying`);
  said.migratedAfterDeath = await countOf(`${library}_dying`);
  console.log(JSON.stringify(said));
}

async function countOf(name) {
  const { rows } = await pool.query('SELECT count(*)::int AS n FROM migrated WHERE table_name = $1', [name]);
  return rows[0].n;
}

async function start(name) {
  const child = spawn(process.execPath, [process.argv[1], library, name], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  return { child, exited, go: () => child.stdin.write('go\n') };
}

async function together(name) {
  const instances = await Promise.all(Array.from({ length: 5 }, () => start(name)));
  for (const one of instances) one.go();
  return Promise.all(instances.map(async ({ exited }) => (await exited)[0]));
}

/** One that dies in the middle of its migration: what it did is rolled back, and one of the others migrates. */
async function dying(name) {
  const [victim, heir] = await Promise.all([start(name), start(name)]);
  victim.go();
  for (;;) {
    const { rows } = await pool.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(0.5)%' AND query NOT LIKE '%pg_stat_activity%' AND state = 'active'",
    );
    if (rows[0].n > 0) break;
  }
  victim.child.kill('SIGKILL');
  heir.go();
  return (await heir.exited)[0];
}
