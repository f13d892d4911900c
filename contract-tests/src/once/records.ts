/** The record of every store, on the server of a harness. */
import type { OnceRecord } from '@locks/core/backend';
import { mysqlRecord } from '@locks/mysql';
import { postgresRecord } from '@locks/postgres';
import * as onIoredis from '@locks/redis-ioredis';
import * as onNodeRedis from '@locks/redis-node';
import { sqliteRecord } from '@locks/sqlite';
import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { createClient } from 'redis';
import type { PostgresAddress } from '../harnesses/postgres/deployment.ts';
import type { RedisAddress } from '../harnesses/redis/address.ts';
import type { RecordKind } from './commands.ts';

function redisUrl(): string {
  const { url } = JSON.parse(process.env['LOCKS_CONFORMANCE_REDIS'] ?? '') as RedisAddress & { url: string };
  return url;
}

export const recordOf: Readonly<Record<RecordKind, () => Promise<OnceRecord>>> = {
  async 'redis-ioredis'() {
    return onIoredis.redisRecord(new Redis(redisUrl()));
  },
  async 'redis-node'() {
    return onNodeRedis.redisRecord(await createClient({ url: redisUrl() }).connect());
  },
  async 'postgres-lease'() {
    const { url } = JSON.parse(process.env['LOCKS_CONFORMANCE_POSTGRES'] ?? '') as PostgresAddress;
    return postgresRecord(new pg.Pool({ connectionString: url, max: 2, allowExitOnIdle: true }));
  },
  async mysql() {
    const uri = JSON.parse(process.env['LOCKS_CONFORMANCE_MYSQL'] ?? '') as string;
    return mysqlRecord(createPool({ uri, connectionLimit: 2 }));
  },
  async sqlite() {
    return sqliteRecord({ path: `${process.env['LOCKS_SQLITE_PATH']}.record` });
  },
};
