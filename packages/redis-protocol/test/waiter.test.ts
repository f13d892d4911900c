import { call, handOffOverCutChannel, granted, request, startProxy, waitUntil } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { callFor, participant } from './participant.ts';

useRedis();

describe('a waiter', () => {
  it('gets its message on a channel that was opened while it waited already', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    const name = fresh();
    const grant = await a.take(name);
    const { turn } = await b.queue(request(name));
    const queue = `{lock::${name}}:q`;
    await waitUntil(
      async () => String(await redis.command('ZRANGEBYSCORE', queue, 0, '+inf')).includes('|='),
      {
        what: 'the channel in the queue',
      },
    );
    expect(await redis.command('ZCOUNT', queue, 0, '+inf')).toBe(1);
    await a.backend.release(grant, call);
    expect(await turn).toBeDefined();
  });

  it('gets its message on a channel that opened while its enqueue was under way', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy, { maxPollMs: 60_000 });
    const [name, other] = [fresh(), fresh()];
    const grant = await a.take(name);
    await a.take(other);
    await b.client.ping();
    const [commands] = proxy.connections();
    await b.queue(request(other)); // Opens the channel.
    proxy.stall({ direction: 'toClient', only: (connection) => connection === commands });
    const queued = b.queue(request(name));
    const queue = `{lock::${name}}:q`;
    await waitUntil(async () => (await redis.command('EXISTS', queue)) === 1, { what: 'the enqueue' });
    await waitUntil(
      async () =>
        String(await redis.command('ZRANGEBYSCORE', `{lock::${other}}:q`, 0, '+inf')).includes('|='),
      { what: 'the open channel' },
    );
    await proxy.heal();
    const { turn } = await queued;
    await waitUntil(
      async () => String(await redis.command('ZRANGEBYSCORE', queue, 0, '+inf')).includes('|='),
      {
        what: 'the channel in the queue',
      },
    );
    await a.backend.release(grant, call);
    expect(await turn).toBeDefined();
  });

  it('gets a lock that was handed off while its channel was being opened', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy, { maxPollMs: 60_000 });
    await b.client.ping();
    const name = fresh();
    const grant = await a.take(name);
    proxy.stall({ only: (connection) => connection !== proxy.connections()[0] });
    const { turn } = await b.queue(request(name));
    await a.backend.release(grant, call);
    await proxy.heal();
    expect(await turn).toBeDefined();
  });

  it('ends its wait with its deadline or signal, and leaves nothing when abandoned', async () => {
    await using a = participant(redis);
    const name = fresh();
    const grant = await a.take(name);
    const wanted = request(name);
    await a.backend.attempt(wanted, true, call);
    expect(await a.backend.awaitTurn?.(wanted, callFor(20))).toBeUndefined();
    const controller = new AbortController();
    const turn = a.backend.awaitTurn?.(wanted, { ...call, signal: controller.signal });
    controller.abort();
    expect(await turn).toBeUndefined();
    await a.backend.abandon(wanted, call);
    expect((await a.backend.inspect(name, call)).waiters).toEqual([]);
    await a.backend.release(grant, call);
    expect(await redis.command('KEYS', `*${name}*`)).toEqual([]);
  });

  it('that is abandoned before its enqueue was answered is not kept in the queue', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy, { maxPollMs: 50 });
    await b.openChannel();
    const name = fresh();
    await a.take(name);
    const wanted = request(name);
    proxy.stall({ direction: 'toClient' });
    const attempt = b.backend.attempt(wanted, true, call);
    const abandoned = b.backend.abandon(wanted, call);
    await proxy.heal();
    await Promise.all([attempt, abandoned]);
    proxy.resetCounts();
    const from = performance.now();
    await waitUntil(() => performance.now() - from > 300, { what: 'several checks' });
    expect(proxy.countRequests()).toBe(0);
    expect((await a.backend.inspect(name, call)).waiters).toEqual([]);
  });

  it('hands off a lock that it got while it was abandoned', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    const name = fresh();
    const grant = await a.take(name);
    const given = request(name);
    await b.backend.attempt(given, true, call);
    const { turn: next } = await a.queue(request(name));
    await a.backend.release(grant, call);
    await b.backend.abandon(given, call);
    expect(await next).toBeDefined();
  });

  it('keeps its position when the lock that it was handed is stolen before it heard of it', async () => {
    for (const isStolenReleased of [false, true]) {
      await using proxy = await startProxy(redis);
      await using a = participant(redis, { maxPollMs: 60_000 });
      await using b = participant(proxy, { maxPollMs: 60_000 });
      await b.openChannel();
      const name = fresh();
      const held = await a.take(name);
      const [first, second, third] = [request(name), request(name), request(name)];
      const { turn } = await b.queue(first);
      const { turn: secondTurn } = await a.queue(second);
      await a.queue(third);
      // The message is lost, and the next check comes when its channel was opened again.
      proxy.blackhole({ direction: 'toClient', only: (connection) => connection.sawSubscribe });
      await a.backend.release(held, call);
      const state = () => a.backend.inspect(name, call);
      expect((await state()).holders[0]?.acquisitionId).toBe(first.acquisitionId);
      const stolen = granted(await a.backend.attempt({ ...request(name), steal: true }, true, call));
      let next = stolen;
      // Until the process of the first waiter knows of the steal, the store does not: the second waiter is next.
      if (isStolenReleased) {
        await a.backend.release(stolen, call);
        next = (await secondTurn) ?? stolen;
        expect(next.request.acquisitionId).toBe(second.acquisitionId);
      }
      await proxy.heal();
      await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      const behind = isStolenReleased ? [first, third] : [first, second, third];
      await waitUntil(async () => (await state()).waiters.length === behind.length, { what: 'the first' });
      expect((await state()).waiters.map(({ acquisitionId }) => acquisitionId)).toEqual(
        behind.map(({ acquisitionId }) => acquisitionId),
      );
      await a.backend.release(next, call);
      expect((await turn)?.request.acquisitionId).toBe(first.acquisitionId);
    }
  });

  it('is granted without any message by its next check', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy);
    await b.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    const { turn } = await b.queue(request(name));
    proxy.blackhole({ direction: 'toClient', only: (connection) => connection.sawSubscribe });
    const from = performance.now();
    await a.backend.release(grant, call);
    expect(await turn).toBeDefined();
    expect(performance.now() - from).toBeLessThan(1000 + 700);
  });

  it('is woken by a check after a foreign lock ended', async () => {
    await using a = participant(redis);
    const name = fresh();
    await redis.command('SET', `lock::${name}`, 'a-lock-of-python', 'NX', 'PX', 30_000);
    const wanted = request(name);
    expect(await a.backend.attempt(wanted, false, call)).toEqual({ status: 'contended' });
    const { turn } = await a.queue(wanted);
    await redis.command('DEL', `lock::${name}`);
    const from = performance.now();
    const grant = await turn;
    expect(performance.now() - from).toBeLessThan(1000 + 700);
    expect(await redis.command('SET', `lock::${name}`, 'a-lock-of-python', 'NX', 'PX', 30_000)).toBeNull();
    if (grant) await a.backend.release(grant, call);
  });

  it('is served after its holder expired', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    const name = fresh();
    await a.take(name, 300);
    const { turn } = await b.queue(request(name));
    const from = performance.now();
    expect(await turn).toBeDefined();
    expect(performance.now() - from).toBeLessThan(300 + 1000 + 700);
  });

  it('does not take a message of a hand-off that has lapsed for a new one', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy, { maxPollMs: 1200 });
    await b.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    const { turn } = await b.queue(request(name, 400));
    let hasEnded = false;
    void turn.then(() => (hasEnded = true));
    // The message is delayed until the hand-off has lapsed, a stranger holds the lock, and a check has seen it.
    proxy.stall({ only: (connection) => connection.sawSubscribe });
    await a.backend.release(grant, call);
    await waitUntil(() => a.client.set(`lock::${name}`, 'stranger', 'PX', 5000, 'NX'), { what: 'the lapse' });
    const queue = `{lock::${name}}:q`;
    await waitUntil(async () => (await a.client.zcount(queue, 0, '+inf')) === 1, {
      what: 'the check',
      everyMs: 2,
    });
    // Its reply is here before the late message.
    await b.client.ping();
    await proxy.heal();
    const healed = performance.now();
    await waitUntil(() => performance.now() - healed > 300, { what: 'the late message' });
    expect(hasEnded).toBe(false);
    await a.client.del(`lock::${name}`);
    const got = await turn;
    expect(await a.client.get(`lock::${name}`)).toMatch(new RegExp(`^${got?.request.acquisitionId}\\|`));
  });

  it('abandons at once what was granted to an id that nobody waits for', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await b.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    await b.queue(request(name));
    // A ghost in the queue: an enqueue that the server got after its abandon.
    const queue = `{lock::${name}}:q`;
    const [liveness, member] = (await redis.command('ZRANGE', queue, 0, 1)) as string[];
    const position = Number(await redis.command('ZSCORE', queue, member as string));
    const ghost = String(member).replace(/^[^|]+/, 'ghost');
    await redis.command('ZADD', queue, position - 1, ghost);
    expect(liveness).toMatch(/^@=/);
    const from = performance.now();
    await a.backend.release(grant, call);
    await waitUntil(
      async () =>
        String(await redis.command('GET', `lock::${name}`)).startsWith(
          String(member).split('|')[0] as string,
        ),
      {
        what: 'the turn of the waiter behind the ghost',
      },
    );
    expect(performance.now() - from).toBeLessThan(1500);
  });

  it('goes on when its channel is cut, and no hand-off is lost', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy);
    await b.openChannel();
    await handOffOverCutChannel(a, b, proxy, fresh());
  });

  it('waits by its checks when it may not subscribe', async () => {
    await redis.command('ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', '+@all', 'resetchannels');
    await using a = participant(redis, {}, { username: 'mute', password: 'secret' });
    await using b = participant(redis, {}, { username: 'mute', password: 'secret' });
    const name = fresh();
    const grant = await a.take(name);
    const { turn } = await b.queue(request(name));
    const from = performance.now();
    await a.backend.release(grant, call);
    expect(await turn).toBeDefined();
    expect(performance.now() - from).toBeLessThan(1000 + 700);
  });
});
