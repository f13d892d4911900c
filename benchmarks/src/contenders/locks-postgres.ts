import { createLocks } from '@locks/core';
import { postgresAdvisoryBackend, postgresLeaseBackend } from '@locks/postgres';
import pg from 'pg';
import type { Contender } from './contender.ts';
import { oursContender } from './locks.ts';

const packages = ['@locks/postgres', 'pg'];

/** The backend on a pool of the application, with pg's default of at most 10 connections. */
export const postgresLease: Contender = oursContender({
  store: 'postgres',
  name: '@locks/postgres lease',
  floor: 'raw lease table',
  packages,
  async openLocks(url, ttlMs) {
    const pool = new pg.Pool({ connectionString: url });
    const locks = createLocks(postgresLeaseBackend({ pool }), { ttlMs });
    return {
      locks,
      ping: () => pool.query({ name: 'ping', text: 'SELECT 1' }),
      close: async () => {
        await locks.close();
        await pool.end();
      },
    };
  },
});

/** The backend opens connections of its own, whatever the pool: sessions hold the locks. */
export const postgresAdvisory: Contender = oursContender({
  store: 'postgres',
  name: '@locks/postgres advisory',
  floor: 'raw advisory lock',
  packages,
  async openLocks(url, ttlMs) {
    const pool = new pg.Pool({ connectionString: url });
    const locks = createLocks(postgresAdvisoryBackend({ pool }), { ttlMs });
    return {
      locks,
      ping: () => pool.query({ name: 'ping', text: 'SELECT 1' }),
      close: async () => {
        await locks.close();
        await pool.end();
      },
    };
  },
});
