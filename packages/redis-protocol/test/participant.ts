import { randomUUID } from 'node:crypto';
import type { Call, Grant } from '@locks/core/backend';
import { call, Participant, request, waitUntil } from '@locks/test-servers';
import { Redis, type RedisOptions } from 'ioredis';
import { createRedisBackend, type RedisBackendOptions } from '../src/index.ts';
import { TestPort } from './test-port.ts';

export function callFor(ms: number): Call {
  return { now: call.now, deadline: performance.now() + ms };
}

export class RedisParticipant extends Participant {
  readonly client: Redis;
  readonly port: TestPort;

  constructor(client: Redis, options: RedisBackendOptions) {
    const port = new TestPort(client);
    super(createRedisBackend(port, options), () => client.disconnect());
    this.client = client;
    this.port = port;
  }

  /** Lets it wait once, until its waiters get messages on its channel. */
  async openChannel(): Promise<void> {
    const name = randomUUID();
    const held = await this.take(name);
    const waiter = request(name);
    await this.backend.attempt(waiter, true, call);
    const members = () => this.client.zrangebyscore(`{lock::${name}}:q`, 0, '+inf');
    await waitUntil(async () => (await members())[0]?.includes('|=lock:ch:'), {
      what: 'its channel in the queue',
    });
    await this.backend.abandon(waiter, call);
    await this.backend.release(held, call);
  }
}

export function participant(
  { port }: { readonly port: number },
  options: RedisBackendOptions = {},
  clientOptions: RedisOptions = {},
): RedisParticipant {
  const client = new Redis({ port, host: '127.0.0.1', ...clientOptions });
  client.on('error', () => undefined);
  return new RedisParticipant(client, options);
}

/** Waits until `to` has received all messages published to its channel so far. */
export async function hearsAll(from: RedisParticipant, to: RedisParticipant): Promise<void> {
  const name = randomUUID();
  const held = await from.take(name);
  const { turn } = await to.queue(request(name));
  await from.backend.release(held, call);
  await to.backend.release((await turn) as Grant, call);
}
