import { describe, expect, it } from 'vitest';
import { escapeKey, type KeyAlphabet, mayStartWith } from '../src/index.ts';

const SMALL = 'abcdefghijklmnopqrstuvwxyz0123456789';
const anyCase: KeyAlphabet = { plain: `${SMALL}${SMALL.toUpperCase()}-_/`, escape: '=', maxLength: 200 };
const oneCase: KeyAlphabet = { plain: `${SMALL}.`, escape: '-', maxLength: 100 };
const KEYS = [
  'a',
  'A',
  'a=',
  'a=3d',
  '=',
  '==',
  '',
  ' ',
  'a.b',
  '.',
  '..',
  'a/b',
  '\n',
  '\0',
  '*',
  '>',
  'é',
  'e\u0301',
  '🔒',
  '-2d',
  '-',
];

describe.each([
  ['both cases', anyCase],
  ['one case', oneCase],
])('escaped keys in %s', (_, alphabet) => {
  it('have only what the server allows', () => {
    const allowed = new Set(`${alphabet.plain}${alphabet.escape}`);
    for (const key of KEYS)
      expect(
        escapeKey(key, alphabet)
          .split('')
          .filter((char) => !allowed.has(char)),
      ).toEqual([]);
  });

  it('are different where the keys are', () => {
    const long = ['x', 'y'].map((last) => `${'ü'.repeat(300)}${last}`);
    const escaped = [...KEYS, ...long].map((key) => escapeKey(key, alphabet));
    expect(new Set(escaped).size).toBe(escaped.length);
  });

  it('are never too long, and a hash is no escaped form of anything', () => {
    const escaped = escapeKey('ü'.repeat(300), alphabet);
    expect(escaped.length).toBeLessThanOrEqual(alphabet.maxLength);
    expect(escaped.startsWith(alphabet.escape.repeat(2))).toBe(true);
    for (const key of KEYS)
      expect(escapeKey(key, alphabet).startsWith(alphabet.escape.repeat(2))).toBe(false);
  });

  it('keep prefixes, as far as they can', () => {
    for (const prefix of KEYS) {
      expect(mayStartWith(escapeKey(`${prefix}ö/x`, alphabet), prefix, alphabet)).toBe(true);
      expect(mayStartWith(escapeKey(`${prefix}${'ü'.repeat(300)}`, alphabet), prefix, alphabet)).toBe(true);
    }
    expect(mayStartWith(escapeKey('locks/x', alphabet), 'lacks/', alphabet)).toBe(false);
  });
});

it('keys that differ in case only are different to a server that does not tell cases apart', () => {
  const folded = ['a', 'A', 'é', 'É', '-C9'].map((key) => escapeKey(key, oneCase).toLowerCase());
  expect(new Set(folded).size).toBe(folded.length);
});
