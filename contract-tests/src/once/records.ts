/** The record of every store, and the result store where there is one, on the server of a harness. */
import type { OnceRecord, ResultStore } from '@locks/core/backend';
import { mysqlRecord } from '@locks/mysql';
import { postgresRecord, postgresResults } from '@locks/postgres';
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

interface Stores {
  readonly record: OnceRecord;
  readonly results?: ResultStore;
}

export const storesOf: Readonly<Record<RecordKind, () => Promise<Stores>>> = {
  async 'redis-ioredis'() {
    const client = new Redis(redisUrl());
    return { record: onIoredis.redisRecord(client), results: onIoredis.redisResults(client) };
  },
  async 'redis-node'() {
    const client = await createClient({ url: redisUrl() }).connect();
    return { record: onNodeRedis.redisRecord(client), results: onNodeRedis.redisResults(client) };
  },
  async 'postgres-lease'() {
    const { url } = JSON.parse(process.env['LOCKS_CONFORMANCE_POSTGRES'] ?? '') as PostgresAddress;
    const pool = new pg.Pool({ connectionString: url, max: 2, allowExitOnIdle: true });
    return { record: postgresRecord(pool), results: postgresResults(pool) };
  },
  async mysql() {
    const uri = JSON.parse(process.env['LOCKS_CONFORMANCE_MYSQL'] ?? '') as string;
    return { record: mysqlRecord(createPool({ uri, connectionLimit: 2 })) };
  },
  async sqlite() {
    return { record: sqliteRecord({ path: `${process.env['LOCKS_SQLITE_PATH']}.record` }) };
  },
};
