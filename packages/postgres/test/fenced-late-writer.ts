/** A process that holds a lease, and writes when it is asked to, without checking whether it still holds. */
import { createLocks } from '@locks/core';
import { serveCalls } from '@locks/core/conformance/process';
import pg from 'pg';
import { fencedUpdate, postgresLeaseBackend } from '../src/index.ts';

const [url = '', name = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url });
const locks = createLocks(postgresLeaseBackend(pool));
const { fencingToken: token } = await locks.lock(name, { ttlMs: 500 }).acquire();

const methods = {
  fenced: () => fencedUpdate(pool, { table: 'stock', key: { sku: name }, set: { writer: 'late' }, token }),
  plain: async () => void (await pool.query(`UPDATE stock SET writer = 'late' WHERE sku = $1`, [name])),
};
export type LateWriter = typeof methods;

serveCalls(methods);
