import { createLocks } from '@locks/core';
import { createRedisBackend, type RedisCommand } from '@locks/redis-protocol';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { LuaScripts } from '../../src/redis/lua-scripts.ts';
import { type ClientReply, SimulatedRedis } from '../../src/redis/simulated-redis.ts';
import { type SimulatedRedisNetwork, SimulatedRedisPort } from '../../src/redis/simulated-redis-port.ts';

let lua: LuaScripts;
let server: SimulatedRedis;
beforeAll(async () => {
  lua = await LuaScripts.load();
});
beforeEach(() => {
  server = new SimulatedRedis({ lua, micros: () => Math.floor(Date.now() * 1000) });
});

/** A network without faults, but for those that a test puts in its place. */
function network(faults: Partial<SimulatedRedisNetwork> = {}): SimulatedRedisNetwork {
  return {
    server: () => server,
    request: (_, execute) => Promise.resolve().then(execute),
    message: (deliver) => deliver(),
    ...faults,
  };
}

function client(faults?: Partial<SimulatedRedisNetwork>) {
  const port = new SimulatedRedisPort(network(faults));
  const options = { maxPollMs: 50 };
  return { port, locks: createLocks(createRedisBackend(port, options), { ttlMs: 5_000 }) };
}

it('two clients exclude each other, and the second is handed the lock', async () => {
  const [a, b] = [client(), client()];
  const held = await a.locks.lock('sku').acquire();
  expect(await b.locks.lock('sku').tryAcquire()).toBeUndefined();
  const waiting = b.locks.lock('sku').acquire({ waitMs: 5_000 });
  await held.release();
  const next = await waiting;
  expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
  await next.release();
  await Promise.all([a.locks.close(), b.locks.close()]);
  expect(server.keys().filter((key) => key.includes('sku'))).toEqual([]);
});

it('a waiter whose messages are lost is granted by its checks', async () => {
  let lost = 0;
  const [a, b] = [client(), client({ message: () => (lost += 1) })];
  const held = await a.locks.lock('sku').acquire();
  const waiting = b.locks.lock('sku').acquire({ waitMs: 5_000 });
  // Waits until the channel is listened to, so that a message is sent at all.
  const channel = await listenedChannel();
  expect(server.listeners(channel)).toBe(1);
  await held.release();
  const next = await waiting;
  expect(lost).toBeGreaterThan(0);
  await next.release();
  await Promise.all([a.locks.close(), b.locks.close()]);
});

it('a reply that is lost after the execution gives the same grant again', async () => {
  let losses = 1;
  const sent: string[] = [];
  const { locks } = client({
    request: async (command: RedisCommand, execute: () => ClientReply) => {
      await Promise.resolve();
      sent.push(command[0]);
      const reply = execute();
      if (command[0] === 'EVAL' && losses-- > 0) {
        throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      }
      return reply;
    },
  });
  const lease = await locks.lock('sku').acquire();
  expect(sent).toEqual(['GET', 'SET', 'EVALSHA', 'EVAL', 'EVALSHA']);
  expect(String(server.execute(['GET', 'lock::sku']))).toContain(`|${lease.fencingToken}|`);
  await lease.release();
  await locks.close();
});

it('subscriptions that were lost are taken up again, and told so', async () => {
  const { port } = client();
  const heard: string[] = [];
  await port.subscribe('channel', {
    message: (text) => heard.push(text),
    restored: () => heard.push('restored'),
  });
  server.execute(['PUBLISH', 'channel', 'first']);
  port.loseSubscriptions();
  expect(server.execute(['PUBLISH', 'channel', 'nobody listens'])).toBe(0);
  await port.resubscribe();
  server.execute(['PUBLISH', 'channel', 'second']);
  expect(heard).toEqual(['first', 'restored', 'second']);
  await port.close();
  expect(server.listeners('channel')).toBe(0);
});

/** The channel of the only waiter, once its queue names it as one that somebody listens to. */
async function listenedChannel(): Promise<string> {
  for (;;) {
    const members = server.execute(['ZRANGEBYSCORE', '{lock::sku}:q', '0', '+inf']) as string[];
    const channel = /\|=([^|]+)\|/.exec(members[0] ?? '')?.[1];
    if (channel !== undefined) return channel;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
