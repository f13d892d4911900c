import { createHash } from 'node:crypto';

/** The keys that a server allows. */
export interface KeyAlphabet {
  /**
   * The characters that stay as they are: ASCII, without the escape. No capitals where the server does not tell them from small letters.
   */
  readonly plain: string;
  /** The character before the two hexadecimal digits of a byte that is escaped. */
  readonly escape: string;
  /** The longest key, in characters; at least 80. */
  readonly maxLength: number;
}

/**
 * Writes a key in the characters that a server allows. Different keys stay different. A key that gets too long becomes a hash: two
 * escapes, and 64 digits.
 */
export function escapeKey(key: string, alphabet: KeyAlphabet): string {
  const escaped = withEscapes(key, alphabet);
  if (escaped.length <= alphabet.maxLength) return escaped;
  return `${hashMark(alphabet)}${createHash('sha256').update(key).digest('hex')}`;
}

/** Whether an escaped key may be one of those that start with `prefix`: a hash may. */
export function mayStartWith(escaped: string, prefix: string, alphabet: KeyAlphabet): boolean {
  return escaped.startsWith(hashMark(alphabet)) || escaped.startsWith(withEscapes(prefix, alphabet));
}

/** An escape is followed by a digit anywhere else. */
function hashMark({ escape }: KeyAlphabet): string {
  return `${escape}${escape}`;
}

/** Byte by byte: what a key starts with, its escaped form starts with. */
function withEscapes(key: string, { plain, escape }: KeyAlphabet): string {
  let escaped = '';
  for (const byte of Buffer.from(key)) {
    const char = String.fromCharCode(byte);
    escaped += byte < 0x80 && plain.includes(char) ? char : `${escape}${byte.toString(16).padStart(2, '0')}`;
  }
  return escaped;
}
