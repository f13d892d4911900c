import { randomUUID } from 'node:crypto';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '@locks/core/backend';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import type { RedisBackendOptions } from '@locks/redis-protocol';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import { redisBackend } from '../src/index.ts';

export const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export function request(resource: string, ttlMs = 30_000): AcquireRequest {
  return { resource, acquisitionId: randomUUID(), label: 'test', mode: { kind: 'exclusive' }, ttlMs };
}

export function granted(attempt: Attempt): Grant {
  if (attempt.status !== 'granted') throw new Error('contended');
  return attempt.grant;
}

export class Party implements AsyncDisposable {
  readonly backend: LockBackend;
  readonly #end: () => unknown;

  constructor(backend: LockBackend, end: () => unknown) {
    this.backend = backend;
    this.#end = end;
  }

  async take(resource: string, ttlMs?: number): Promise<Grant> {
    return granted(await this.backend.attempt(request(resource, ttlMs), true, call));
  }

  /** Enqueues, and gives the turn to come. */
  async queue(wanted: AcquireRequest): Promise<{ readonly turn: Promise<Grant | undefined> }> {
    const { status } = await this.backend.attempt(wanted, true, call);
    if (status === 'granted') throw new Error('not contended');
    const turn = this.backend.awaitTurn?.(wanted, call) ?? Promise.reject(new Error('no awaitTurn'));
    turn.catch(() => undefined);
    return { turn };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.backend.close();
    await this.#end();
  }
}

const quiet = () => undefined;

export interface Address {
  readonly port: number;
}

export async function nodeRedisParty({ port }: Address, options?: RedisBackendOptions): Promise<Party> {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on('error', quiet);
  await client.connect();
  return new Party(redisBackend(client, options), () => client.destroy());
}

export function ioredisParty({ port }: Address, options?: RedisBackendOptions): Promise<Party> {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', quiet);
  return Promise.resolve(new Party(ioredisBackend(client, options), () => client.disconnect()));
}

export async function nodeRedisClusterParty(roots: readonly Address[]): Promise<Party> {
  const client = createCluster({
    rootNodes: roots.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
  });
  client.on('error', quiet);
  await client.connect();
  return new Party(redisBackend(client), () => client.destroy());
}

export function ioredisClusterParty(roots: readonly Address[]): Promise<Party> {
  const client = new Cluster(roots.map(({ port }) => ({ host: '127.0.0.1', port })));
  client.on('error', quiet);
  return Promise.resolve(new Party(ioredisBackend(client), () => client.disconnect()));
}

export async function nodeRedisSentinelParty(sentinels: readonly Address[], name: string): Promise<Party> {
  const sentinelRootNodes = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
  const client = createSentinel({ name, sentinelRootNodes, scanInterval: 500 });
  client.on('error', quiet);
  await client.connect();
  return new Party(redisBackend(client), () => client.destroy());
}

export function ioredisSentinelParty(sentinels: readonly Address[], name: string): Promise<Party> {
  const client = new Redis({ sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })), name });
  client.on('error', quiet);
  return Promise.resolve(new Party(ioredisBackend(client), () => client.disconnect()));
}
