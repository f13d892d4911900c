import { startRedis } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { decodeName, encodeName, holdersKey, keysOf, keysOfLock, readPrefix } from '../src/keys.ts';
import { slotOf, tagOf } from '../src/slot.ts';

const nasty = [
  'a',
  'a b',
  'a\nb',
  'a\0b',
  '{a}',
  '{a',
  'a}',
  '%7Ba%7D',
  '%7Ba',
  '%257Ba',
  '%25',
  '%',
  '%7b',
  '{%}',
  '{%25}',
  'sku:42',
  'ü€😀',
  '{}',
  '|',
  'a|b',
  '*',
  '[x]?',
  ':q',
];

describe('names in keys', () => {
  it('stands verbatim without braces, so that locks of other languages meet ours', () => {
    for (const name of ['sku:42', 'a b', '100%', 'ü€😀', '%7b', '%41']) expect(encodeName(name)).toBe(name);
  });

  it('is encoded when it has a brace or looks encoded', () => {
    expect(encodeName('{a}%')).toBe('%7Ba%7D%25');
    expect(encodeName('%7Ba')).toBe('%257Ba');
  });

  it('comes back from its key, and no two names share one', () => {
    expect(new Set(nasty.map(encodeName)).size).toBe(nasty.length);
    for (const name of nasty) expect(decodeName(encodeName(name))).toBe(name);
    const alphabet = ['%', '{', '}', '2', '5', '7', 'B', 'D'];
    const seen = new Map<string, string>();
    for (let n = 0; n < 8 ** 5; n++) {
      const name = n.toString(8).replace(/./g, (digit) => alphabet[Number(digit)] as string);
      const key = encodeName(name);
      expect(seen.get(key) ?? name).toBe(name);
      seen.set(key, name);
      if (decodeName(key) !== name) expect.fail(name);
    }
  });

  it('says of a key that no name of ours has that it has none', () => {
    expect(decodeName('{x}')).toBeUndefined();
  });

  it('puts all keys of a resource in the slot of the lock key', async () => {
    await using redis = await startRedis({
      args: ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
    });
    for (const name of nasty) {
      const keys = keysOfLock(`lock:${encodeName(name)}`);
      for (const key of [keys.lock, keys.token, keys.queue]) {
        expect([name, key, await redis.command('CLUSTER', 'KEYSLOT', key)]).toEqual([name, key, keys.slot]);
      }
    }
  });

  it('keeps the lock keys of every name apart from all our other keys, also without a prefix', () => {
    const names = [
      ...nasty,
      'locks:token:{1}',
      '{a}:q',
      '{a}:h',
      'locks:token:1',
      'locks:ch:1',
      'locks:fence:{1}:a',
    ];
    const all = names.map((name) => keysOf('', name));
    const others = all.flatMap((keys) => [keys.token, keys.queue, holdersKey(keys)]);
    expect(new Set(all.map(({ lock }) => lock)).size).toBe(names.length);
    expect(new Set(all.map(({ queue }) => queue)).size).toBe(names.length);
    expect(all.filter(({ lock }) => others.includes(lock))).toEqual([]);
  });

  it('has a tag for every slot', () => {
    for (let slot = 0; slot < 16384; slot++) expect(slotOf(tagOf(slot))).toBe(slot);
  });

  it('refuses a prefix that would choose the slot or break a value', () => {
    for (const prefix of ['{app}:', 'a|b', 'a\n', '\ud800', 'x'.repeat(200)]) {
      expect(() => readPrefix(prefix, 'prefix')).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    }
    expect(readPrefix('app:lock:', 'prefix')).toBe('app:lock:');
    expect(readPrefix('', 'prefix')).toBe('');
  });
});
