// `main.js <library>`: a lock in the transaction of a library, and a fenced write in it. It says what happened, and ends by itself.
import { createLocks, isLockError } from '@locks/core';
import {
  advisoryLockInTransaction,
  fencedUpdate,
  postgresLeaseBackend,
  tryAdvisoryLockInTransaction,
} from '@locks/postgres';
import pg from 'pg';
import { libraries } from './libraries.js';

const library = process.argv[2];
const { begin, nested, executor, refused, outside, end } = await libraries[library]();
const name = `orms ${library}`;
const table = `orms_${library.replaceAll(/\W/g, '_')}`;

const other = new pg.Client({ connectionString: process.env.POSTGRES_URL });
await other.connect();
await other.query(`DROP TABLE IF EXISTS ${table}`);
await other.query(`CREATE TABLE ${table} (sku int PRIMARY KEY, quantity int, fencing_token bigint)`);
await other.query(`INSERT INTO ${table} VALUES (42, 1, NULL)`);
const quantity = async () => (await other.query(`SELECT quantity FROM ${table}`)).rows[0].quantity;
const codeOf = (error) => (isLockError(error) ? error.code : String(error));

/** Whether another transaction could take the lock in this moment. */
async function isFree() {
  await other.query('BEGIN');
  const free = await tryAdvisoryLockInTransaction(other, name);
  await other.query('ROLLBACK');
  return free;
}

const update = (token, set) => ({ table, key: { sku: 42 }, set: { quantity: set }, token });
const said = {};

// With the commit the write stands and the lock is free.
await begin(async (tx) => {
  await advisoryLockInTransaction(executor(tx), name, { waitMs: 2_000 });
  said.isHeldInside = !(await isFree());
  said.isWritten = await fencedUpdate(executor(tx), update(7n, 2));
});
said.afterCommit = [await quantity(), await isFree()];

// With the rollback neither happened.
await begin(async (tx) => {
  await advisoryLockInTransaction(executor(tx), name, { mode: 'shared' });
  await fencedUpdate(executor(tx), update(8n, 3));
  throw new Error('rolled back');
}).catch((error) => (said.rolledBack = error.message));
said.afterRollback = [await quantity(), await isFree()];

// A lock that is held elsewhere: the transaction goes on without it.
await other.query('BEGIN');
await advisoryLockInTransaction(other, name);
await begin(async (tx) => {
  said.tried = await tryAdvisoryLockInTransaction(executor(tx), name);
  said.timeout = await advisoryLockInTransaction(executor(tx), name, { waitMs: 50 }).catch(codeOf);
  await fencedUpdate(executor(tx), update(8n, 4));
});
await other.query('COMMIT');
said.afterTimeout = await quantity();

// A holder that lost its lease while it worked: its successor has written under a newer token.
const locks = createLocks(postgresLeaseBackend(process.env.POSTGRES_URL));
await other.query(`UPDATE ${table} SET fencing_token = NULL`);
await locks.lock(name).run(async ({ fencingToken: token }) => {
  await fencedUpdate(other, update(token + 1n, 5));
  said.lost = await begin((tx) => fencedUpdate(executor(tx), update(token, 6))).catch(codeOf);
  said.refusedName = await begin((tx) => advisoryLockInTransaction(executor(tx), name)).catch(codeOf);
});
await locks.close();
said.afterLoss = await quantity();

// A nested transaction that is rolled back gives its lock back; the outer one goes on.
if (nested === undefined) said.afterNested = [true, true];
else {
  await begin(async (tx) => {
    await nested(tx, async (inner) => {
      await advisoryLockInTransaction(executor(inner), name);
      said.afterNested = [!(await isFree())];
      throw new Error('inner');
    }).catch(() => {});
    said.afterNested.push(await isFree());
  });
}

// Mistakes.
said.outside = await advisoryLockInTransaction(outside, name).catch(codeOf);
said.wrongKind =
  refused === undefined
    ? 'LOCK_INVALID_ARGUMENT'
    : await begin((tx) => advisoryLockInTransaction(refused(tx), name)).catch(codeOf);

await end();
await other.query(`DROP TABLE ${table}`);
await other.end();
console.log(JSON.stringify(said));
