import { memoryBackend } from '@locks/memory';
import { isLockError } from '@locks/core';
import { describe, expect, it } from 'vitest';
import { webLocks } from '../src/index.ts';
import { ResourceNames } from '../src/resource-names.ts';

const names = new ResourceNames('web-locks');

/** Strings over the units that could be confused, from a seed. */
function* strings(count: number, seed: number): Generator<string> {
  const alphabet = ['%', '2', '5', 'u', 'D', '8', '0', '~', ':', '\0', '\uD800', '\uDC00', '\uFFFD', 'é', ''];
  let state = seed;
  for (let made = 0; made < count; made += 1) {
    let text = '';
    for (let length = 0; length < 8; length += 1) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      text += alphabet[(state >>> 16) % alphabet.length] as string;
    }
    yield text;
  }
}

describe('ResourceNames', () => {
  it('gives every string a name of core, and the string back', () => {
    for (const name of ['', '%', '%25', '%uD800', '\uD800', '\0', '😀', 'a:b', ...strings(5_000, 42)]) {
      const resource = names.resourceOf(name);
      expect(resource.isWellFormed()).toBe(true);
      expect(names.nameOf(resource)).toBe(name);
    }
  });

  it('gives different strings different names', () => {
    const all = new Set(strings(20_000, 7));
    expect(new Set([...all].map((name) => names.resourceOf(name))).size).toBe(all.size);
  });

  it('hashes what is too long, and keeps the beginning readable', () => {
    const long = `invoice %\uD800 ${'x'.repeat(600)}`;
    const resources = [long, `${long}y`, `${long}%`, `${long}\uD800`, `${long}\uDBFF`, '😀'.repeat(300)].map(
      (name) => names.resourceOf(name),
    );
    expect(new Set(resources).size).toBe(6);
    for (const resource of resources) {
      expect(resource.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(resource)).toBeLessThanOrEqual(512);
    }
    expect(names.nameOf(resources[0] as string)).toMatch(/^invoice %\uD800 x+…$/);
  });

  it('takes no name for the hash of another', () => {
    const hashed = names.resourceOf('x'.repeat(600));
    const pretender = hashed.slice(names.prefix.length);
    expect(names.resourceOf(pretender)).not.toBe(hashed);
  });

  it('keeps scopes apart, whatever characters they have', () => {
    const resources = [
      new ResourceNames('a').resourceOf('b:c'),
      new ResourceNames('a:b').resourceOf('c'),
      new ResourceNames('https://example.com').resourceOf('c'),
    ];
    expect(new Set(resources).size).toBe(3);
  });

  it.each(['', '\uD800', 'x'.repeat(200), 7 as never])('refuses the scope %j', (scope) => {
    let error: unknown;
    try {
      webLocks(memoryBackend(), { scope });
    } catch (thrown) {
      error = thrown;
    }
    expect(isLockError(error, 'LOCK_INVALID_ARGUMENT')).toBe(true);
  });
});
