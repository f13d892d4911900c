import { sendCommands, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { client, fresh, redis, useServer } from './lab.ts';

useServer();

describe('release', () => {
  it('frees what this id holds and nothing else', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    expect(await client.release(name, 'b')).toBe('not-held');
    expect(await client.run(scripts.releaseKey, [client.lock(name)], ['b'])).toBe('not-held');
    expect(await client.release(name, 'a')).toBe('released');
    expect(await client.release(name, 'a')).toBe('not-held');
    expect(await redis.command('EXISTS', client.lock(name))).toBe(0);
  });

  it('hands off in order, for the ttl of the waiter, with a new token', async () => {
    const name = fresh();
    const token = Number(await client.acquire(name, 'a'));
    for (const id of ['b', 'c', 'd']) await client.acquire(name, id, { replyAddress: '=me', ttlMs: 9_000 });
    let last = token;
    for (const [from, to] of [
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'd'],
    ] as const) {
      const reply = (await client.release(name, from)) as unknown[];
      expect(reply.slice(0, 2)).toEqual(['released', to]);
      expect(Number(reply[2])).toBeGreaterThan(last);
      last = Number(reply[2]);
      const left = Number(await redis.command('PTTL', client.lock(name)));
      expect(left).toBeGreaterThan(8_000);
      expect(left).toBeLessThanOrEqual(9_000);
    }
    expect(await client.release(name, 'd')).toBe('released');
    expect(await redis.command('EXISTS', client.lock(name), client.keys(name)[2])).toBe(0);
  });

  it('passes over a waiter whose channel nobody listens to, but not in a cluster', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '=gone' });
    await client.acquire(name, 'c', { replyAddress: '~cluster' });
    expect(await client.release(name, 'a')).toEqual(['released']);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
  });

  it('passes over a waiter whose sharded channel nobody listens to', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '^gone{1}' });
    await client.acquire(name, 'c', { replyAddress: '~silent' });
    expect(await client.release(name, 'a')).toEqual(['released']);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
  });

  it('publishes to the sharded channel of a waiter, and not to the plain one of that name', async () => {
    const name = fresh();
    const heard: unknown[][] = [];
    const listener = new Redis(redis.url);
    onTestFinished(() => listener.disconnect());
    listener.on('smessage', (...message) => heard.push(['sharded', ...message]));
    listener.on('message', (...message) => heard.push(['plain', ...message]));
    await listener.ssubscribe('told{1}');
    await listener.subscribe('told{1}');
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '^told{1}' });
    expect(await client.release(name, 'a')).toEqual(['released']);
    await waitUntil(() => heard.length > 0, { what: 'the message' });
    expect(heard).toEqual([
      ['sharded', 'told{1}', expect.stringMatching(new RegExp(`^granted b \\d+ ${client.lock(name)}$`))],
    ]);
  });

  it("knows a process by its channel up to the hash tag: it gets its waiters' hand-offs in the reply", async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    for (const [id, replyAddress] of [
      ['b', '^own{1}'],
      ['c', '!own'],
      ['d', '^own{2}'],
    ] as const) {
      await client.acquire(name, id, { replyAddress });
    }
    for (const [from, to, caller] of [
      ['a', 'b', '!own'],
      ['b', 'c', '^own{2}'],
      ['c', 'd', '^own{3}'],
    ] as const) {
      expect(await client.release(name, from, caller)).toMatchObject(['released', to, expect.anything()]);
    }
  });

  it('leaves a free lock when nobody who waits is there', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '=gone' });
    expect(await client.release(name, 'a')).toBe('released');
    expect(await redis.command('EXISTS', client.lock(name), client.keys(name)[2])).toBe(0);
  });

  it.each([
    ['publish', '~x', '+@all'],
    ['publish, nor ask who listens', '=x', '-pubsub'],
    ['publish to a sharded channel', '^x{1}', '-spublish'],
    ['publish to a sharded channel, nor ask who listens', '^x{1}', '-pubsub'],
  ])('hands off whole when the user may not %s', async (_, replyAddress, rights) => {
    const name = fresh();
    await redis.command('ACL', 'SETUSER', 'mute', 'reset', 'on', 'nopass', '~*', '+@all', rights);
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress });
    await client.acquire(name, 'c', { replyAddress });
    const replies = await sendCommands(redis, [
      ['AUTH', 'mute', ''],
      ['EVAL', scripts.release.source, 3, ...client.keys(name), 'a', '=me'],
    ]);
    expect(replies.at(-1)).toEqual(['released']);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|\+\|/);
    expect(await redis.command('ZCOUNT', client.keys(name)[2], '0', '+inf')).toBe(1);
  });
});

describe('abandon', () => {
  it('ends a hold with a hand-off, a wait without a trace, and may be repeated', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    for (const id of ['b', 'c']) await client.acquire(name, id, { replyAddress: '=me' });
    expect(await client.abandon(name, 'b')).toBe('not-held');
    expect(((await client.abandon(name, 'a')) as unknown[])[1]).toBe('c');
    expect(await client.abandon(name, 'a')).toBe('not-held');
    expect(await client.abandon(name, 'c')).toBe('released');
    expect(await redis.command('EXISTS', client.lock(name), client.keys(name)[2])).toBe(0);
  });

  it('removes the queue with its last waiter', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '=me' });
    await client.abandon(name, 'b');
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
  });
});

describe('force-release', () => {
  it('ends any hold, or only the expected one, and serves the next', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '~x' });
    expect(await client.run(scripts.forceRelease, client.keys(name), ['=me', 'z'])).toBe('nothing-ended');
    const ended = (await client.run(scripts.forceRelease, client.keys(name), ['=me', 'a'])) as unknown[];
    expect(ended.slice(0, 2)).toEqual(['ended', expect.stringMatching(/^a\|\+\|/)]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|/);
    await redis.command('SET', client.lock(name), 'stranger');
    const foreign = await client.run(scripts.forceRelease, client.keys(name), ['=me', 'stranger']);
    expect(foreign).toEqual(['ended', 'stranger', -1, expect.any(Number), []]);
    expect(await client.run(scripts.forceRelease, client.keys(name), ['=me'])).toBe('nothing-ended');
  });
});
