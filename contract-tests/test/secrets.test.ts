/** No error of any package, in whatever form it reaches a log, shows the password of a URL or the token of a database. */
import { inspect } from 'node:util';
import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { dynamodbBackend } from '@locks/dynamodb';
import { etcdBackend } from '@locks/etcd';
import { mongodbBackend } from '@locks/mongodb';
import { mysqlBackend } from '@locks/mysql';
import { postgresAdvisoryBackend, postgresLeaseBackend } from '@locks/postgres';
import { postgresLeaseBackend as postgresJsBackend } from '@locks/postgres/postgres-js';
import { redisBackend as glideBackend } from '@locks/redis-glide';
import { redisBackend as ioredisBackend, redisSlots } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { redissonBackend } from '@locks/redisson/ioredis';
import { s3Backend } from '@locks/s3';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { upstashBackend } from '@locks/upstash';
import { zookeeperBackend } from '@locks/zookeeper';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { GlideClient, Logger } from '@valkey/valkey-glide';
import { Cluster, Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import postgres from 'postgres';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const SECRET = 'hunter2-s3cret';
/** Nobody listens there. */
const AWAY = '127.0.0.1:1';

let redis: RedisServer;

beforeAll(async () => {
  Logger.init('off');
  redis = await startRedis({ password: 'another password' });
});
afterAll(() => redis.stop());

/** Every text that an error can become: by its message, its stack, as JSON, as a console prints it, and by all properties below it. */
function textsOf(value: unknown, seen = new Set<unknown>()): string[] {
  if (typeof value === 'string') return [value];
  if (Buffer.isBuffer(value)) return [value.toString()];
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  const texts = [inspect(value, { depth: 20, showHidden: true })];
  try {
    texts.push(JSON.stringify(value));
  } catch {
    // An error with circles is never logged as JSON.
  }
  for (const name of Reflect.ownKeys(value))
    texts.push(...textsOf((value as Record<PropertyKey, unknown>)[name], seen));
  return texts;
}

function expectNoSecret(error: unknown): void {
  expect(error, 'nothing failed').toBeInstanceOf(Error);
  const texts = textsOf(error);
  expect(texts.length).toBeGreaterThan(2);
  expect(texts.filter((text) => text.includes(SECRET))).toEqual([]);
}

async function errorOf(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return error;
  }
}

interface Opened {
  readonly backend: LockBackend;
  end?(): unknown;
}

const quiet = <C extends { on(event: 'error', listener: () => void): unknown }>(client: C): C => {
  client.on('error', () => undefined);
  return client;
};
const ioredisAt = (at: string): Redis =>
  quiet(new Redis(`redis://user:${SECRET}@${at}`, { maxRetriesPerRequest: 1 }));

/** What is opened at a server that refuses the password, or at none. */
const redisKinds: Readonly<Record<string, (at: string) => Opened | Promise<Opened>>> = {
  ioredis(at) {
    const client = ioredisAt(at);
    return { backend: ioredisBackend(client), end: () => client.disconnect() };
  },
  'a cluster of ioredis': (at) => {
    const [host, port] = at.split(':');
    const redisOptions = { username: 'user', password: SECRET };
    const client = quiet(new Cluster([{ host, port: Number(port) }], { redisOptions }));
    return { backend: ioredisBackend(client), end: () => client.disconnect() };
  },
  redisson(at) {
    const client = ioredisAt(at);
    return { backend: redissonBackend(client), end: () => client.disconnect() };
  },
  'node-redis': (at) => {
    const client = quiet(createClient({ url: `redis://user:${SECRET}@${at}` }));
    client.connect().catch(() => undefined);
    return { backend: nodeRedisBackend(client), end: () => client.destroy() };
  },
  async GLIDE(at) {
    const [host = '', port] = at.split(':');
    const client = await GlideClient.createClient({
      addresses: [{ host, port: Number(port) }],
      credentials: { username: 'user', password: SECRET },
      lazyConnect: true,
    });
    return { backend: glideBackend(client), end: () => client.close() };
  },
};

const others: Readonly<Record<string, (at: string) => Opened>> = {
  Upstash: (at) => ({ backend: upstashBackend({ url: `http://${at}`, token: SECRET }) }),
  'postgres, leases': (at) => ({
    backend: postgresLeaseBackend(`postgres://user:${SECRET}@${at}/db?sslpassword=${SECRET}`),
  }),
  'postgres, advisory locks': (at) => ({
    backend: postgresAdvisoryBackend(`postgres://user:${SECRET}@${at}/db`),
  }),
  'postgres.js': (at) => {
    const sql = postgres(`postgres://user:${SECRET}@${at}/db`, { connect_timeout: 1 });
    return { backend: postgresJsBackend(sql), end: () => sql.end({ timeout: 0 }) };
  },
  mysql: (at) => ({ backend: mysqlBackend(`mysql://user:${SECRET}@${at}/db`) }),
  mongodb(at) {
    const client = new MongoClient(`mongodb://user:${SECRET}@${at}/db`, { serverSelectionTimeoutMS: 200 });
    return {
      backend: mongodbBackend(client.db().collection('locks')),
      end: () => client.close(),
    };
  },
  etcd: (at) => ({
    backend: etcdBackend(
      { hosts: `http://${at}`, auth: { username: 'user', password: SECRET } },
      { requestTimeoutMs: 200 },
    ),
  }),
  zookeeper: (at) => ({
    backend: zookeeperBackend(at, {
      connectTimeoutMs: 200,
      setUpClient: (client) => client.addAuthInfo('digest', Buffer.from(`user:${SECRET}`)),
    }),
  }),
  dynamodb(at) {
    const credentials = { accessKeyId: 'user', secretAccessKey: SECRET };
    const client = new DynamoDBClient({ endpoint: `http://${at}`, region: 'x', maxAttempts: 1, credentials });
    return { backend: dynamodbBackend(client, { table: 'locks' }), end: () => client.destroy() };
  },
  s3(at) {
    const credentials = { accessKeyId: 'user', secretAccessKey: SECRET };
    const client = new S3Client({ endpoint: `http://${at}`, region: 'x', maxAttempts: 1, credentials });
    return { backend: s3Backend(client, { bucket: 'locks' }), end: () => client.destroy() };
  },
};

async function expectSilent({ backend, end }: Opened): Promise<void> {
  const locks = createLocks(backend, { answerMs: 300 });
  try {
    for (const call of [
      () => locks.lock('a').acquire({ waitMs: 500 }),
      () => locks.lock('a').tryAcquire(),
      () => locks.ping(),
    ]) {
      expectNoSecret(await errorOf(call));
    }
  } finally {
    await errorOf(() => locks.close());
    await errorOf(() => end?.());
  }
}

describe('a password is in no error', () => {
  it.each(Object.entries(redisKinds))('of %s whose login is refused', async (_, open) => {
    await expectSilent(await open(`127.0.0.1:${redis.port}`));
  });

  it.each([...Object.entries(redisKinds), ...Object.entries(others)])(
    'of %s whose server is away',
    async (_, open) => {
      await expectSilent(await open(AWAY));
    },
  );

  it('of a record whose client is refused', async () => {
    const client = ioredisAt(`127.0.0.1:${redis.port}`);
    expectNoSecret(await errorOf(() => redisSlots(client).read('job')));
    client.disconnect();
  });
});

describe('a password in an address is in no refusal', () => {
  const url = `https://user:${SECRET}@example.com`;
  const bad = [
    url,
    `${url}/x?password=${SECRET}`,
    `user:${SECRET}@host:1`,
    `host=x password=${SECRET}`,
    `token=${SECRET}`,
  ];
  const calls: Readonly<Record<string, (address: string) => unknown>> = {
    'upstashBackend: url': (address) => upstashBackend({ url: address, token: 'x' }),
    'upstashBackend in place of the options': (address) => upstashBackend(address as never),
    'redisBackend of ioredis': (address) => ioredisBackend(address as never),
    'redisBackend of node-redis': (address) => nodeRedisBackend(address as never),
    'redisBackend of GLIDE': (address) => glideBackend(address as never),
    'postgresLeaseBackend in place of the options': (address) => postgresLeaseBackend(address as never),
    'postgres.js': (address) => postgresJsBackend(address as never),
    'mysqlBackend: url': (address) => mysqlBackend(address),
    'mongodbBackend: collection': (address) => mongodbBackend(address as never),
    'etcdBackend: hosts': (address) => etcdBackend({ hosts: address.replace('host=x', 'x@y') }),
    'zookeeperBackend: servers': (address) => zookeeperBackend(address),
    createLocks: (address) => createLocks(address as never),
  };

  it.each(Object.entries(calls))('of %s', async (_, call) => {
    for (const address of bad) {
      // What is no address of this kind at all may be taken for a host, or refused; with an @ it is refused.
      const error = await errorOf(() => call(address));
      if (error instanceof Error) expectNoSecret(error);
      else expect(address).not.toContain('@');
    }
  });

  it('of an address of Upstash with credentials, which is refused at once', () => {
    expect(() => upstashBackend({ url, token: 'x' })).toThrow(
      expect.objectContaining({
        code: 'LOCK_INVALID_ARGUMENT',
        message: expect.stringContaining('password'),
      }),
    );
  });
});
