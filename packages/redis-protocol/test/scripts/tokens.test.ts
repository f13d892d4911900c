import { describe, expect, it } from 'vitest';
import { client, fresh, number, redis, useServer } from './lab.ts';

useServer();

describe('the time until which queues may exist in a slot', () => {
  const horizonOf = async (name: string) =>
    String(await redis.command('GET', client.keys(name)[1])).split(';')[1];

  it('is never moved back: not by a waiter, a hand-off or a grant', async () => {
    const name = fresh();
    const [, token] = client.keys(name);
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '=me' });
    const [last, horizon] = String(await redis.command('GET', token)).split(';');
    const later = String(Number(horizon) + 60_000);
    await redis.command('SET', token, `${last};${later}`);
    await client.acquire(name, 'c', { replyAddress: '=me' });
    expect(await horizonOf(name)).toBe(later);
    await client.release(name, 'a');
    expect(await horizonOf(name)).toBe(later);
    await client.release(name, 'b');
    await client.release(name, 'c');
    await client.acquire(name, 'd');
    expect(await horizonOf(name)).toBe(later);
    // Where the number is ahead of the time too.
    await redis.command('SET', token, `${Number(last) + 60_000_000};${later}`);
    await client.acquire(name, 'e', { replyAddress: '=me' });
    expect(await redis.command('GET', token)).toBe(`${Number(last) + 60_000_001};${later}`);
  });
});

describe('tokens', () => {
  it('differ although a stranger has written a number that Lua does not tell from the next', async () => {
    const [name, stranger] = [fresh(), Number.MAX_SAFE_INTEGER];
    for (const stored of [`${stranger}`, `${stranger};${stranger}`, '9223372036854775807']) {
      await redis.command('SET', client.keys(name)[1], stored);
      const tokens: bigint[] = [];
      for (const id of ['a', 'b', 'c']) {
        tokens.push(BigInt(String(await client.acquire(name, id))));
        await client.release(name, id);
      }
      expect(new Set(tokens).size).toBe(3);
      for (const token of tokens) expect(token).toBeLessThan(BigInt(stranger));
    }
  });

  it('rise with every holder, also when the stored one is ahead of the clock', async () => {
    const name = fresh();
    const ahead = 9_007_199_254_000_000n - 7_000_000_000_000_000n + 1_000_000_000_000_000n;
    await redis.command('SET', client.keys(name)[1], ahead.toString());
    const tokens: bigint[] = [ahead];
    for (const id of ['a', 'b', 'c']) {
      tokens.push(BigInt(String(await client.acquire(name, id))));
      await client.release(name, id);
    }
    for (let at = 1; at < tokens.length; at++) expect(tokens[at]).toBeGreaterThan(tokens[at - 1] as bigint);
    expect(tokens[3]).toBe(ahead + 3n);
    await client.acquire(name, 'd');
    const position = number(await client.acquire(name, 'e', { replyAddress: '=me' }));
    const [, , handed] = (await client.release(name, 'd')) as [string, string, number];
    expect(BigInt(position)).toBe(ahead + 5n);
    expect(BigInt(handed)).toBe(ahead + 6n);
    expect(await redis.command('GET', client.keys(name)[1])).toMatch(new RegExp(`^${handed}(;|$)`));
  });

  it('heal a token key that cannot be read', async () => {
    for (const spoil of [
      ['SET', 'x'],
      ['RPUSH', 'x'],
    ] as const) {
      const name = fresh();
      const [, token] = client.keys(name);
      await redis.command('DEL', token);
      await redis.command(spoil[0], token, spoil[1]);
      expect(Number(await client.acquire(name, 'a'))).toBeGreaterThan(1.6e15);
      expect(await redis.command('GET', token)).toMatch(/^\d+$/);
    }
  });

  it('are written whole: no exponent, no fraction', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '~x' });
    expect(await redis.command('GET', client.keys(name)[1])).toMatch(/^\d{16};\d{13}$/);
    await client.release(name, 'a');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|-\|\d{16}\|label$/);
  });
});
