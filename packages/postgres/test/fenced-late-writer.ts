/** A process that holds a lease, and writes when it is told to, without looking whether it still holds. */
import { createLocks } from '@locks/core';
import pg from 'pg';
import { fencedUpdate, postgresLeaseBackend } from '../src/index.ts';

const [url = '', name = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url });
const locks = createLocks(postgresLeaseBackend({ pool }));
const lease = await locks.lock(name, { ttlMs: 500 }).acquire();
const { fencingToken: token } = lease;

process.on('message', (how: 'fenced' | 'plain') => {
  const writing =
    how === 'fenced'
      ? fencedUpdate(pool, { table: 'stock', key: { sku: name }, set: { writer: 'late' }, token })
      : pool.query(`UPDATE stock SET writer = 'late' WHERE sku = $1`, [name]);
  writing.then(
    () => process.send?.('written'),
    (error: { code?: string; reason?: string }) => process.send?.(`${error.code} ${error.reason}`),
  );
});
process.send?.('holds');
