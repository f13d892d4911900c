import { Verrou } from '@verrou/core';
import { knexStore } from '@verrou/core/drivers/knex';
import knex from 'knex';
import { type Contender, TTL_MS } from './contender.ts';

/** Polls every 250 ms by default, without end. Locks expire by the client's clock, and there is no token. */
export const verrouKnex: Contender = {
  store: 'postgres',
  name: '@verrou/core knex',
  kind: 'peer',
  floor: 'raw lease table',
  packages: ['@verrou/core', 'knex', 'pg'],
  async open(url) {
    const connection = knex({ client: 'pg', connection: url });
    const library = new Verrou({
      default: 'database',
      stores: { database: { driver: knexStore({ connection }) } },
    });
    return {
      async acquire(name) {
        const lock = library.createLock(name, TTL_MS);
        if (!(await lock.acquire())) throw new Error('verrou gave up');
        return () => lock.release();
      },
      ping: async () => connection.raw('SELECT 1'),
      close: () => connection.destroy(),
    };
  },
};
