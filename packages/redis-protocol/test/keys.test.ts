import { startRedis } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { holdersKey, LockKeys, lockKeys, readPrefix } from '../src/keys.ts';
import { slotOf, tagOf } from '../src/slot.ts';

const under = new LockKeys('lock:', false);
const bare = new LockKeys('', true);
const encodeName = (name: string): string => under.of(name).lock.slice('lock::'.length);
const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

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
  '::',
  'a::b',
  ':',
  '%3A',
  '%3Aa',
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
    for (const name of nasty) {
      expect(under.nameIn(under.of(name).lock)).toBe(name);
      expect(bare.nameIn(bare.of(name).lock)).toBe(name);
    }
    const alphabet = ['%', '{', ':', '2', '5', '7', 'B', '3'];
    const seen = new Map<string, string>();
    for (let n = 0; n < 8 ** 5; n++) {
      const name = n.toString(8).replace(/./g, (digit) => alphabet[Number(digit)] as string);
      for (const keys of [under, bare]) {
        const key = keys.of(name).lock;
        expect(seen.get(key) ?? name).toBe(name);
        seen.set(key, name);
        if (keys.nameIn(key) !== name) expect.fail(name);
      }
    }
  });

  it('says of a key that no name of ours has that it has none', () => {
    for (const key of ['lock::{x}', 'lock::', 'lock:x', 'x::y'])
      expect(under.nameIn(key), key).toBeUndefined();
    for (const key of ['{x}', '', ':x', 'lock::x']) expect(bare.nameIn(key), key).toBeUndefined();
  });

  it('puts all keys of a resource in the slot of the lock key', async () => {
    await using redis = await startRedis({
      args: ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
    });
    for (const name of nasty) {
      const keys = under.of(name);
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
    const all = names.map((name) => bare.of(name));
    const others = all.flatMap((keys) => [keys.token, keys.queue, holdersKey(keys)]);
    expect(new Set(all.map(({ lock }) => lock)).size).toBe(names.length);
    expect(new Set(all.map(({ queue }) => queue)).size).toBe(names.length);
    expect(all.filter(({ lock }) => others.includes(lock))).toEqual([]);
  });

  it('has a tag for every slot', () => {
    for (let slot = 0; slot < 16384; slot++) expect(slotOf(tagOf(slot))).toBe(slot);
  });

  it('refuses a prefix that would choose the slot or break a value', () => {
    for (const prefix of ['{app}:', 'a|b:', 'a\n:', '\ud800:', `${'x'.repeat(200)}:`]) {
      expect(() => readPrefix(prefix, 'prefix')).toThrow(invalid);
    }
    expect(readPrefix('app:lock:', 'prefix')).toBe('app:lock:');
    expect(readPrefix('', 'prefix')).toBe('');
  });

  it('belong to one prefix: where two texts are cut differently, the keys differ or the prefix is refused', () => {
    for (const prefix of ['lock', 'a::', 'a::b:', ':']) {
      if (prefix !== ':') expect(() => readPrefix(prefix, 'prefix'), prefix).toThrow(invalid);
    }
    expect(() => lockKeys('a::', '', 'prefix')).toThrow(invalid);
    expect(() => lockKeys('a:', ':b:', 'prefix')).toThrow(invalid);
    const parts = ['a', ':', '::', 'lock:', 'b:c', '%3A'];
    const texts = parts.flatMap((one) => parts.flatMap((two) => parts.map((three) => one + two + three)));
    const owners = new Map<string, string>();
    for (const text of texts) {
      for (let cut = 0; cut < text.length; cut += 1) {
        const [prefix, name] = [text.slice(0, cut), text.slice(cut)];
        let keys: LockKeys;
        try {
          keys = lockKeys('', readPrefix(prefix, 'prefix'), 'prefix');
        } catch {
          continue;
        }
        const owner = JSON.stringify([prefix, name]);
        const { lock } = keys.of(name);
        expect(owners.get(lock) ?? owner).toBe(owner);
        owners.set(lock, owner);
      }
    }
    expect(owners.size).toBeGreaterThan(400);
  });
});
