import { Buffer } from 'node:buffer';

const LONGEST = 512;

/** Suffixes with characters that stores often handle wrongly. */
// biome-ignore format: one of them per line would be three pages.
const SUFFIXES = [
  '', ' ', '  ', '\t', '\n', '\r', '\r\n', '\0', '\0\0', '\0a', 'a\0', '\u0001', '\u007f', '\u0085', '\u00a0', '\u2028', '\ufeff',
  '\ufffd', '\uffff', 'A', 'a', 'ß', 'SS', 'ss', 'ẞ', 'İ', 'i', 'I', 'ı', 'é', 'e\u0301', 'É', 'e', 'Å', 'Å', 'A\u030a', 'ﬁ', 'fi',
  'Ω', 'Ω', 'K', 'K', '가', '\u1100\u1161', '😀', '👩‍🚀', '👩🚀', '𝔞', '\u200b', '\u200d', '{', '}', '{}', '{x}', '{x', 'x}', '}{', '{{x}}',
  '{x}y', ':', '::', ':q', ':w', ':queue', ':wait', ':token', ':fence', ':channel', '{q}', '{w}', '/', '//', '/a', '../', '.', '..', '\\',
  '\\0', '\\n', '\\x00', '\\u0000', '%', '%%', '%00', '%20', '%7B', '%7b', '%7Bx%7D', '%257B', '%25', '+', '&', '#', '?', '*', '[a]', '[', ']',
  '^', '_', '-', "'", '"', "''", "';--", '`', '$', '$1', '${x}', '|', '~', '!', '@', ',', ';', '=', '<', '>', '(', ')', '0', '00', '-0', '1',
  '1.0', '1e0', 'null', 'undefined', 'NULL', 'true', '__proto__', 'constructor', 'toString', 'hasOwnProperty',
];

/** Prefixes and suffixes that make a name look like the key of another name, or like its hash tag. */
// biome-ignore format: as above.
const AROUND: readonly (readonly [string, string])[] = [
  ['{', '}'], ['{', '}:q'], ['{', '}:w'], ['{', '}:waiters'], ['{', ':q}'], ['{{', '}}'], ['lock:', ''], ['lock:{', '}'], ['locks:', ''],
  [' ', ''], ['\0', ''], ['/', ''], ['%7B', '%7D'], ['"', '"'], ["'", "'"], ['__proto__', ''], ['\ufeff', ''], ['A', ''], ['a', ''],
];

/**
 * `count` distinct names of 1 to 512 bytes. They differ only in case, blanks, normal form, escapes, braces, or in the last
 * of 512 bytes, or look like the key of a side structure.
 */
export function nastyNames(base: string, count: number): string[] {
  const names = new Set<string>();
  for (const suffix of SUFFIXES) names.add(`${base}${suffix}`);
  for (const [before, after] of AROUND) names.add(`${before}${base}${after}`);
  names.add(base.toUpperCase()).add(base.toLowerCase());
  const room = LONGEST - Buffer.byteLength(base);
  for (const last of ['x', 'y', 'X', ' ', '\0', '}']) names.add(`${base}${'x'.repeat(room - 1)}${last}`);
  for (const last of ['é', 'è']) names.add(`${base}${'é'.repeat((room - 2) >> 1)}${last}`);
  for (let index = 0; names.size < count; index += 1) {
    const suffix = SUFFIXES[index % SUFFIXES.length] as string;
    names.add(`${base}${'\0 {%'[index % 4]}${suffix}${Math.floor(index / SUFFIXES.length) || ''}`);
  }
  return [...names].slice(0, count);
}
