import { expect, test } from 'vitest';
import { describe } from '../src/errors.ts';
import { checkLabel, checkName, MAX_NAME_BYTES } from '../src/names.ts';
import { codeOf, locksOn, rejectionOf } from './fixture.ts';
import { capabilities, granted, scriptedBackend } from './scripted-backend.ts';

const bad: [string, unknown][] = [
  ['nothing', undefined],
  ['null', null],
  ['a number', 5],
  ['an object', { toString: () => 'a' }],
  ['an array', ['a']],
  ['a String object', Object('a')],
  ['a symbol', Symbol('a')],
  ['an empty string', ''],
  ['513 bytes', 'x'.repeat(513)],
  ['513 bytes in 171 characters', '€'.repeat(171)],
  ['a long text', 'x'.repeat(100_000)],
  ['a lone high surrogate', 'a\ud83d'],
  ['a lone low surrogate', '\ude80b'],
  ['surrogates in the wrong order', '\ude80\ud83d'],
];

test.each(bad)('a name that is %s is refused', async (_what, name) => {
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  expect(codeOf(() => checkName(name))).toBe('LOCK_INVALID_ARGUMENT');
  expect(codeOf(() => locks.lock(name as string))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(locks.inspect(name as string))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(locks.forceRelease(name as string))).toBe('LOCK_INVALID_ARGUMENT');
  expect(backend.sent).toEqual([]);
});

test.each([
  'a',
  ' ',
  '\u0000',
  'line\nbreak',
  '{curly}',
  '%41',
  'sku:42/größe',
  '🚀',
  '__proto__',
  'constructor',
  '\ufeff',
  'x'.repeat(MAX_NAME_BYTES),
  '🚀'.repeat(128),
  '€'.repeat(170),
])('%j is a name, and reaches the backend as it is', async (name) => {
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      expect(request.resource).toBe(name);
      return Promise.resolve(granted(request, call));
    },
  });
  const lease = await locksOn(backend).lock(name).acquire();
  expect(lease.name).toBe(name);
  await lease.release();
});

test('names that look alike are different names', async () => {
  const seen = new Set<string>();
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      seen.add(request.resource);
      return Promise.resolve(granted(request, call));
    },
  });
  const locks = locksOn(backend);
  // Composed and decomposed, upper and lower case, with and without a space at the end.
  const names = ['é', 'e\u0301', 'A', 'a', 'a ', ' a', 'ß', 'ss', '\ufb01', 'fi'];
  for (const name of names) await locks.lock(name).acquire();
  expect(seen.size).toBe(names.length);
});

test.each([undefined, 5, '\ud800', 'tab\there', 'x'.repeat(257)])('%o is no label', (label) => {
  expect(codeOf(() => checkLabel(label, 'label'))).toBe('LOCK_INVALID_ARGUMENT');
});

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  ['x'.repeat(50), `"${'x'.repeat(40)}…"`],
  [5, '5'],
  [5n, '5n'],
  [() => {}, 'a function'],
  [Symbol('s'), 'a symbol'],
  [[1], 'an array'],
  [new Map(), 'an object of Map'],
  [Object.create(null), 'an object of no class'],
])('a message says of %o what it is', (value, said) => {
  expect(describe(value)).toBe(said);
});

test('list refuses what is no prefix', () => {
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['list'] },
    list: async function* () {},
  });
  const locks = locksOn(backend);
  expect(codeOf(() => locks.list(5 as never))).toBe('LOCK_INVALID_ARGUMENT');
  expect(codeOf(() => locks.list('\ud800'))).toBe('LOCK_INVALID_ARGUMENT');
});

test.each(['', 5, null, {}])('forceRelease refuses %o as an acquisition id', async (acquisitionId) => {
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['force-release'] },
    forceRelease: () => Promise.resolve([]),
  });
  const options = { acquisitionId } as never;
  expect(await rejectionOf(locksOn(backend).forceRelease('a', options))).toBe('LOCK_INVALID_ARGUMENT');
});
