import { ioredisPort } from '@locks/redis-ioredis/port';
import { nodeRedisPort } from '@locks/redis-node/port';
import { call, type RedisServer, request, startProxy, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { libraries, openers, startRedis } from './setup.ts';

let redis: RedisServer;
let count = 0;
const fresh = (): string => `name-${++count}`;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

// One list for both libraries, and so one file: each case runs on either.
describe.each(libraries)('on %s', (library) => {
  const open = openers[library];

  it('writes what Redisson writes: a hash with the count of its owner, and a message at its end', async () => {
    await using a = await open(redis);
    await using listener = await listenTo(redis, 'redisson_lock__channel:{written}');
    const grant = await a.take('written', 5_000);
    const { acquisitionId } = grant.request;
    expect(await redis.command('HGETALL', 'written')).toEqual([`${acquisitionId}:test`, '1']);
    expect(Number(await redis.command('PTTL', 'written'))).toBeGreaterThan(4_000);
    expect(await a.backend.release(grant, call)).toBe('released');
    expect(await redis.command('EXISTS', 'written')).toBe(0);
    await waitUntil(() => listener.heard.length > 0, { what: 'a message' });
    expect(listener.heard).toEqual(['0']);
    const [latch] = (await redis.command('KEYS', 'redisson_unlock_latch:{written}:*')) as string[];
    expect(latch).toMatch(/^redisson_unlock_latch:\{written\}:[0-9a-f]{32}$/);
    expect(Number(await redis.command('PTTL', latch as string))).toBeGreaterThan(0);
  });

  it('neither takes, renews, releases nor abandons a hold of Java, which it names', async () => {
    await using a = await open(redis);
    const name = fresh();
    const java = '285475da-9152-4c83-822a-67ee2f116a79:52';
    await redis.command('HSET', name, java, '2');
    await redis.command('PEXPIRE', name, '20000');
    const wanted = request(name);
    expect(await a.backend.attempt(wanted, false, call)).toMatchObject({ status: 'contended' });
    const grant = { request: wanted, countedFrom: 0 };
    expect(await a.backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([
      { status: 'lost', reason: 'taken-over' },
    ]);
    expect(await a.backend.release(grant, call)).toBe('not-held');
    await a.backend.abandon(wanted, call);
    expect(await redis.command('HGETALL', name)).toEqual([java, '2']);
    expect(Number(await redis.command('PTTL', name))).toBeLessThanOrEqual(20_000);
    expect((await a.backend.inspect(name, call)).holders).toMatchObject([
      { acquisitionId: '285475da-9152-4c83-822a-67ee2f116a79', label: '52' },
    ]);
    expect(await a.backend.forceRelease?.(name, 'another', call)).toEqual([]);
    expect(await a.backend.forceRelease?.(name, undefined, call)).toHaveLength(1);
    expect(await redis.command('EXISTS', name)).toBe(0);
  });

  it('never revives a hold: a late renewal finds nothing, or another holder', async () => {
    await using a = await open(redis);
    const name = fresh();
    const grant = await a.take(name);
    await a.backend.release(grant, call);
    expect(await a.backend.renew([{ grant, ttlMs: 5_000 }], call)).toEqual([
      { status: 'lost', reason: 'force-released' },
    ]);
    expect(await redis.command('EXISTS', name)).toBe(0);
    const next = await a.take(name, 5_000);
    expect(await a.backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([
      { status: 'lost', reason: 'taken-over' },
    ]);
    expect(Number(await redis.command('PTTL', name))).toBeLessThanOrEqual(5_000);
    expect(await a.backend.release(next, call)).toBe('released');
  });

  it('renews 250 leases, also where one key was overwritten with a text', async () => {
    await using a = await open(redis);
    const base = fresh();
    const grants = await Promise.all(
      Array.from({ length: 250 }, (_, index) => a.take(`${base} ${index}`, 5_000)),
    );
    await redis.command('SET', `${base} 120`, 'text');
    const statuses = await a.backend.renew(
      grants.map((grant) => ({ grant, ttlMs: 60_000 })),
      call,
    );
    expect(statuses.filter(({ status }) => status === 'held')).toHaveLength(249);
    expect(statuses[120]).toEqual({ status: 'lost', reason: 'taken-over' });
    expect(Number(await redis.command('PTTL', `${base} 249`))).toBeGreaterThan(30_000);
  });

  it('gives each grant a token of its own where the counter is above what Lua tells apart', async () => {
    await using a = await open(redis, { fencing: true });
    const name = fresh();
    await redis.command('SET', `redisson_lock_token:{${name}}`, String(2n ** 53n - 2n));
    const tokens: (bigint | undefined)[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const wanted = request(name);
      const first = await a.backend.attempt(wanted, false, call);
      if (first.status !== 'granted') throw new Error(first.status);
      tokens.push(first.grant.fencingToken);
      const again = await a.backend.attempt(wanted, false, call);
      expect(again).toMatchObject({ status: 'granted', grant: { fencingToken: first.grant.fencingToken } });
      const renewed = await a.backend.renew([{ grant: first.grant, ttlMs: 5_000 }], call);
      expect(renewed).toEqual([{ status: 'held' }]);
      await a.backend.release(first.grant, call);
    }
    expect(tokens).toEqual([1n, 2n, 3n, 4n].map((step) => 2n ** 53n - 2n + step));
  });

  it('takes its tokens from the counter of getFencedLock, and keeps the token of a hold', async () => {
    await using a = await open(redis, { fencing: true });
    const name = fresh();
    const counter = `redisson_lock_token:{${name}}`;
    await redis.command('SET', counter, '41');
    const wanted = request(name);
    const first = await a.backend.attempt(wanted, false, call);
    expect(first).toMatchObject({ status: 'granted', grant: { fencingToken: 42n } });
    // The names "x" and "{x}" share a counter.
    await redis.command('INCR', counter);
    expect(await a.backend.attempt(wanted, false, call)).toMatchObject({
      status: 'granted',
      grant: { fencingToken: 42n },
    });
    const grant = { request: wanted, countedFrom: 0, fencingToken: 42n };
    expect(await a.backend.renew([{ grant, ttlMs: 5_000 }], call)).toEqual([{ status: 'held' }]);
    expect(await a.backend.renew([{ grant: { ...grant, fencingToken: 41n }, ttlMs: 5_000 }], call)).toEqual([
      { status: 'lost', reason: 'taken-over' },
    ]);
    expect((await a.backend.inspect(name, call)).holders).toMatchObject([{ fencingToken: 42n }]);
    expect(await a.backend.release(grant, call)).toBe('released');
    expect((await a.take(name)).fencingToken).toBe(44n);
  });

  it('wakes a waiter by a message of Java, and leaves the channel when nobody waits', async () => {
    await using a = await open(redis, { maxPollMs: 60_000 });
    const name = fresh();
    const channel = `redisson_lock__channel:{${name}}`;
    await redis.command('HSET', name, 'java:1', '1');
    await hintOfListening(a, name);
    const { turn } = await a.queue(request(name));
    await redis.command('DEL', name);
    await redis.command('PUBLISH', channel, '0');
    expect(await turn).toBeUndefined();
    await waitUntil(async () => (await subscribers(channel)) === 0, { what: 'the end of a subscription' });
  });

  it('loses no message that comes between an attempt and its wait', async () => {
    await using a = await open(redis, { maxPollMs: 60_000 });
    await using b = await open(redis);
    const name = fresh();
    const other = fresh();
    const [held, otherHeld] = [await b.take(name), await b.take(other)];
    await hintOfListening(a, other);
    await hintOfListening(a, name);
    const { turn } = await a.queue(request(other));
    const wanted = request(name);
    expect((await a.backend.attempt(wanted, true, call)).status).toBe('contended');
    await b.backend.release(held, call);
    // Messages of one connection come in their order: once it has the second, it has the first.
    await b.backend.release(otherHeld, call);
    await turn;
    expect(await a.backend.awaitTurn?.(wanted, call)).toBeUndefined();
  });

  it('listens again when its channel is cut, and hints meanwhile', async () => {
    await using proxy = await startProxy(redis);
    await using a = await open(proxy, { maxPollMs: 60_000 });
    await using b = await open(redis);
    const name = fresh();
    let held = await b.take(name);
    for (let round = 0; round < 3; round += 1) {
      await hintOfListening(a, name);
      const { turn } = await a.queue(request(name));
      proxy.cut((connection) => connection.sawSubscribe);
      // The lock may have been freed while nobody listened.
      expect(await turn).toBeUndefined();
      expect((await a.backend.attempt(request(name), true, call)).status).toBe('contended');
    }
    expect(await b.backend.release(held, call)).toBe('released');
    held = await a.take(name);
    expect(await a.backend.release(held, call)).toBe('released');
  });

  it('listens to many names on one connection', async () => {
    await using a = await open(redis);
    await using b = await open(redis);
    const names = Array.from({ length: 20 }, fresh);
    for (const name of names) await b.take(name);
    await Promise.all(names.map((name) => hintOfListening(a, name)));
    const clients = String(await redis.command('CLIENT', 'LIST')).split('\n');
    expect(clients.filter((line) => / sub=20 /.test(line))).toHaveLength(1);
  });

  it('waits for a message also where an attempt takes longer than the interval of the checks', async () => {
    await using proxy = await startProxy(redis);
    await using a = await open(proxy, { maxPollMs: 50 });
    await using b = await open(redis);
    const name = fresh();
    const held = await b.take(name);
    await hintOfListening(a, name);
    proxy.latency(200);
    let isOver = false;
    const { turn } = await a.queue(request(name));
    void turn.then(() => (isOver = true));
    // A turn that was over from the beginning would be told by now.
    await b.backend.ping?.(call);
    expect(isOver).toBe(false);
    await b.backend.release(held, call);
    expect(await turn).toBeUndefined();
  });

  it('hears a channel that it left and took again at once', async () => {
    const { port, end } = await openPort(library);
    const heard: string[] = [];
    const lost = (): void => void heard.push('lost');
    const channels = await port.openChannels?.(undefined, false, {
      message: (_, text) => heard.push(text),
      lost,
    });
    if (channels === undefined) throw new Error('no channels');
    for (let round = 0; round < 20; round += 1) {
      await channels.add('left');
      const left = channels.remove('left');
      const again = channels.add('left');
      await Promise.all([left, again]);
      await redis.command('PUBLISH', 'left', String(round));
      await waitUntil(() => heard.length > round, { what: `message ${round}` });
    }
    expect(heard).toEqual(Array.from({ length: 20 }, (_, round) => String(round)));
    await port.close();
    end();
  });

  it('knows a release that the client sent again: the latch tells', async () => {
    await using proxy = await startProxy(redis);
    await using a = await open(proxy);
    await a.backend.release(await a.take(fresh()), call); // The server knows the scripts.
    const grant = await a.take(fresh());
    proxy.loseReplies(({ command }) => command === 'EVALSHA', { times: 1, thenCut: true });
    const outcome = await a.backend.release(grant, call).catch((error: unknown) => error);
    // ioredis sends the command again; node-redis rejects it.
    if (library === 'ioredis') expect(outcome).toBe('released');
    else expect(a.backend.isRetryable(outcome)).toBe(true);
    expect(await a.backend.release(grant, call)).toBe('not-held');
  });

  it('frees by an abandon what its own id holds, and wakes a waiter', async () => {
    await using a = await open(redis, { maxPollMs: 60_000 });
    await using b = await open(redis);
    const name = fresh();
    const { request: held } = await b.take(name);
    await hintOfListening(a, name);
    const { turn } = await a.queue(request(name));
    await b.backend.abandon(held, call);
    expect(await turn).toBeUndefined();
    await a.backend.release(await a.take(name), call);
  });

  /** Attempts as core does until the backend listens to the channel of a contended name: it hints once it does, or may again. */
  async function hintOfListening(a: Awaited<ReturnType<typeof open>>, name: string): Promise<void> {
    do {
      const { turn } = await a.queue(request(name));
      expect(await turn).toBeUndefined();
    } while ((await subscribers(`redisson_lock__channel:{${name}}`)) === 0);
  }
});

it('says that it does not know whether a release took place where a new master has not even its latch', async () => {
  await using proxy = await startProxy(redis);
  await using a = await openers.ioredis(proxy);
  const name = fresh();
  await a.backend.release(await a.take(name), call); // The server knows the scripts.
  await redis.command('FLUSHALL');
  const grant = await a.take(name);
  proxy.refuse();
  proxy.loseReplies(({ command }) => command === 'EVALSHA', { times: 1, thenCut: true });
  const releasing = a.backend.release(grant, call);
  const latches = async () => (await redis.command('KEYS', 'redisson_unlock_latch:*')) as string[];
  await waitUntil(async () => (await latches()).length === 1, { what: 'the release' });
  await redis.command('DEL', ...(await latches()));
  await proxy.heal();
  expect(await releasing).toBe('unknown');
});

async function openPort(library: (typeof libraries)[number]) {
  if (library === 'ioredis') {
    const client = new Redis({ port: redis.port });
    return { port: ioredisPort(client), end: () => client.disconnect() };
  }
  const client = createClient({ socket: { port: redis.port, host: redis.host } });
  await client.connect();
  return { port: nodeRedisPort(client as never), end: () => client.destroy() };
}

async function subscribers(channel: string): Promise<number> {
  const reply = (await redis.command('PUBSUB', 'NUMSUB', channel)) as unknown[];
  return Number(reply[1]);
}

async function listenTo({ port }: RedisServer, channel: string) {
  const client = new Redis({ port });
  const heard: string[] = [];
  client.on('message', (_: string, text: string) => heard.push(text));
  await client.subscribe(channel);
  return {
    heard,
    [Symbol.asyncDispose]: async () => client.disconnect(),
  };
}
