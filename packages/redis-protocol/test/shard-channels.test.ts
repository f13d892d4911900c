import { call, type RedisServer, request, startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { scripts } from '../src/generated/scripts.ts';
import { createRedisBackend, type RedisCommand, type ShardSubscriptionEvents } from '../src/index.ts';
import { participant } from './participant.ts';
import { TestPort } from './test-port.ts';

/** A port that takes a standalone server, which knows sharded channels too, for a cluster of one master. */
class ShardPort extends TestPort {
  override readonly cluster = true;
  opened = 0;
  /** How many more subscriptions fail. */
  failures = 0;
  /** Ends the subscription. */
  lose: () => void = () => undefined;
  /** The reply of a check arrives only after this. */
  checked: Promise<void> = Promise.resolve();
  readonly #connect: () => Redis;

  constructor(client: Redis) {
    super(client);
    this.#connect = () => client.duplicate();
  }

  override async send(key: string, command: RedisCommand): Promise<unknown> {
    const reply = await super.send(key, command);
    const { sha1, source } = scripts.check;
    if (command[1] === sha1 || command[1] === source) await this.checked;
    return reply;
  }

  masterOf(): string {
    return 'the only one';
  }

  async subscribeAt(_: string, channel: string, events: ShardSubscriptionEvents): Promise<void> {
    this.failures -= 1;
    if (this.failures >= 0) throw new Error('connect ECONNREFUSED');
    const connection = this.#connect();
    onTestFinished(() => connection.disconnect());
    connection.on('smessage', (_from: string, text: string) => events.message(text));
    await connection.ssubscribe(channel);
    this.opened += 1;
    this.lose = () => {
      connection.disconnect();
      events.lost();
    };
  }
}

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(async () => redis.stop());

describe('a sharded channel', () => {
  const setUp = async (name: string, failures = 0) => {
    const client = new Redis(redis.url);
    const port = new ShardPort(client);
    port.failures = failures;
    // Nothing here comes from a regular check.
    const backend = createRedisBackend(port, { maxPollMs: 60_000 });
    const holder = participant(redis);
    onTestFinished(async () => {
      await backend.close();
      await holder.backend.close();
      client.disconnect();
      holder.client.disconnect();
    });
    const held = await holder.take(name);
    const waiter = request(name);
    expect(await backend.attempt(waiter, true, call)).toMatchObject({ status: 'contended' });
    const untilNotify = (mode: string) =>
      waitUntil(
        async () => {
          const [member] = await client.zrangebyscore(`{lock::${name}}:q`, 0, '+inf');
          return member?.split('|')[2]?.startsWith(mode);
        },
        { what: `a waiter with ${mode}`, timeoutMs: 3_000 },
      );
    await untilNotify('^');
    const release = () => holder.backend.release(held, call);
    return { backend, port, waiter, untilNotify, release };
  };

  it('that opens again while a check makes its waiters silent gets them back after that check', async () => {
    const { port, untilNotify } = await setUp('under way');
    let answer: () => void = () => undefined;
    port.checked = new Promise((resolve) => {
      answer = resolve;
    });
    port.lose();
    await untilNotify('!');
    await waitUntil(() => port.opened === 2, { what: 'the channel to be opened again' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    answer();
    await untilNotify('^');
  });

  it('that cannot be opened is tried again, without a regular check', async () => {
    const { port } = await setUp('tried again', 2);
    expect(port.opened).toBe(1);
  });

  it('that was lost is opened again, and who was handed the lock meanwhile learns it then', async () => {
    const { backend, port, waiter, untilNotify, release } = await setUp('meanwhile');
    const turn = backend.awaitTurn?.(waiter, call);
    port.lose();
    await untilNotify('!');
    expect(await release()).toBe('released');
    expect(await turn).toMatchObject({ request: waiter });
    expect(port.opened).toBe(2);
  });
});
