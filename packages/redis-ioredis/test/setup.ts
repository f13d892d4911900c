import { randomUUID } from 'node:crypto';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '@locks/core/backend';
import type { RedisBackendOptions } from '@locks/redis-protocol';
import { waitUntil } from '@locks/test-servers';
import { Redis, type RedisOptions } from 'ioredis';
import { redisBackend } from '../src/index.ts';

export const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export function callFor(ms: number): Call {
  return { now: call.now, deadline: performance.now() + ms };
}

export function request(resource: string, ttlMs = 30_000): AcquireRequest {
  return { resource, acquisitionId: randomUUID(), label: 'test', mode: { kind: 'exclusive' }, ttlMs };
}

export function granted(attempt: Attempt): Grant {
  if (attempt.status !== 'granted') throw new Error('contended');
  return attempt.grant;
}

export interface Party extends AsyncDisposable {
  readonly client: Redis;
  readonly backend: LockBackend;
  take(resource: string, ttlMs?: number): Promise<Grant>;
  /** Makes it wait once, and until it is told of its grants on its channel. */
  openChannel(): Promise<void>;
  /** Enqueues, and gives the turn to come. */
  queue(wanted: AcquireRequest): Promise<{ readonly turn: Promise<Grant | undefined> }>;
}

/** A client of its own, as another process would have. */
export function party(
  { port }: { readonly port: number },
  options: RedisBackendOptions = {},
  clientOptions: RedisOptions = {},
): Party {
  const client = new Redis({ port, host: '127.0.0.1', ...clientOptions });
  client.on('error', () => undefined);
  const backend = redisBackend(client, options);
  const openChannel = async (): Promise<void> => {
    const name = randomUUID();
    const held = granted(await backend.attempt(request(name), true, call));
    const waiter = request(name);
    await backend.attempt(waiter, true, call);
    const members = () => client.zrangebyscore(`{lock:${name}}:q`, 0, '+inf');
    await waitUntil(async () => (await members())[0]?.includes('|=lock:ch:'), {
      what: 'its channel in the queue',
    });
    await backend.abandon(waiter, call);
    await backend.release(held, call);
  };
  return {
    client,
    backend,
    openChannel,
    take: async (resource, ttlMs) => granted(await backend.attempt(request(resource, ttlMs), true, call)),
    queue: async (wanted) => {
      const attempt = await backend.attempt(wanted, true, call);
      if (attempt.status === 'granted') throw new Error('not contended');
      const turn = backend.awaitTurn?.(wanted, call);
      if (turn === undefined) throw new Error('no awaitTurn');
      turn.catch(() => undefined);
      return { turn };
    },
    async [Symbol.asyncDispose]() {
      await backend.close();
      client.disconnect();
    },
  };
}
