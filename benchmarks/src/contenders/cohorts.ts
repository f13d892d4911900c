import { createLocks, type LockBackend } from '@locks/core';
import { cohortBackend } from '@locks/cohort';
import type { Contender } from './contender.ts';
import { oursContender } from './locks.ts';

/** A backend on a client of its own. */
interface OpenBackend {
  readonly backend: LockBackend;
  ping(): Promise<unknown>;
  close(): unknown;
}

interface Library {
  readonly name: string;
  readonly packages: readonly string[];
  open(url: string): Promise<OpenBackend>;
}

/** Each client is loaded where it is used: a client process has that of one store only. */
const libraries: readonly Library[] = [
  {
    name: 'redis-ioredis',
    packages: ['@locks/redis-ioredis', 'ioredis'],
    async open(url) {
      const { redisBackend } = await import('@locks/redis-ioredis');
      const client = await (await import('./connect.ts')).connectIoredis(url);
      return { backend: redisBackend(client), ping: () => client.ping(), close: () => client.disconnect() };
    },
  },
  {
    name: 'postgres lease',
    packages: ['@locks/postgres', 'pg'],
    async open(url) {
      const { postgresLeaseBackend } = await import('@locks/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: url });
      const ping = () => pool.query({ name: 'ping', text: 'SELECT 1' });
      return { backend: postgresLeaseBackend({ pool }), ping, close: () => pool.end() };
    },
  },
  {
    name: 'mysql',
    packages: ['@locks/mysql', 'mysql2'],
    async open(url) {
      const { mysqlBackend } = await import('@locks/mysql');
      const { default: mysql } = await import('mysql2/promise');
      const pool = mysql.createPool(url);
      return { backend: mysqlBackend({ pool }), ping: () => pool.query('SELECT 1'), close: () => pool.end() };
    },
  },
  {
    name: 'etcd',
    packages: ['@locks/etcd', 'etcd3'],
    async open(url) {
      const { etcdBackend } = await import('@locks/etcd');
      const { Etcd3 } = await import('etcd3');
      const client = new Etcd3({ hosts: url });
      return {
        backend: etcdBackend(client),
        ping: async () => client.get('ping'),
        close: () => client.close(),
      };
    },
  },
  {
    name: 'sqlite',
    packages: ['@locks/sqlite'],
    async open(path) {
      const { sqliteBackend } = await import('@locks/sqlite');
      return { backend: sqliteBackend({ path }), ping: async () => {}, close: () => {} };
    },
  },
];

const wayTo: Readonly<Record<string, (backend: LockBackend) => LockBackend>> = {
  plain: (backend) => backend,
  cohorts: (backend) => cohortBackend(backend),
  'cohorts of 256': (backend) => cohortBackend(backend, { turns: 256 }),
};

/** Each store without cohorts, with their defaults, and with as many turns as there can be. */
export const cohortContenders: readonly Contender[] = libraries.flatMap(({ name, packages, open }) =>
  Object.entries(wayTo).map(([way, around]) =>
    oursContender({
      store: 'cohorts',
      name: `${name}, ${way}`,
      floor: `${name}, plain`,
      packages,
      async openLocks(url, ttlMs) {
        const { backend, ping, close } = await open(url);
        const locks = createLocks(around(backend), { ttlMs });
        return {
          locks,
          ping,
          close: async () => {
            await locks.close();
            await close();
          },
        };
      },
    }),
  ),
);
