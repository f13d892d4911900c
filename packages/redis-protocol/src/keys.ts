import { mustBe, text } from '@locks/core/backend';
import { slotOf, tagOf } from './slot.ts';

/** The keys of a resource that every mode uses, all in one hash slot. */
export interface ResourceKeys {
  readonly lock: string;
  readonly token: string;
  readonly queue: string;
  readonly slot: number;
}

/** The key of the shares of a resource: the readers or permits that hold it. */
export function holdersKey({ queue }: ResourceKeys): string {
  return `${queue.slice(0, -1)}h`;
}

const DELIMITER = ':';
const ENCODINGS: Record<string, string> = { '%': '%25', '{': '%7B', '}': '%7D', ':': '%3A' };
const DECODINGS: Record<string, string> = { '%25': '%', '%7B': '{', '%7D': '}', '%3A': ':' };

interface NameEncoding {
  /** A name that must be encoded, or that looks as if it were. */
  readonly needed: RegExp;
  readonly characters: RegExp;
  readonly codes: RegExp;
}

const BEHIND_PREFIX: NameEncoding = {
  needed: /[{}]|%(?:25|7B|7D)/,
  characters: /[%{}]/g,
  codes: /%(?:25|7B|7D)/g,
};
/** A bare name has no `::`, which ends a prefix, and does not begin with the second half of one. */
const BARE: NameEncoding = {
  needed: /[{}]|^:|::|%(?:25|7B|7D|3A)/,
  characters: /[%{}:]/g,
  codes: /%(?:25|7B|7D|3A)/g,
};

function encode(name: string, { needed, characters }: NameEncoding): string {
  return needed.test(name) ? name.replace(characters, (char) => ENCODINGS[char] as string) : name;
}

/** Decodes a name; `undefined` for a text that {@link encode} never writes. */
function decode(encoded: string, encoding: NameEncoding): string | undefined {
  if (!encoding.needed.test(encoded)) return encoded;
  const name = encoded.replace(encoding.codes, (code) => DECODINGS[code] as string);
  return encode(name, encoding) === encoded ? name : undefined;
}

/** A name in a key that no lock under a prefix can have: it has no `::`. */
export function encodeBareName(name: string): string {
  return encode(name, BARE);
}

const tokenKeys: (string | undefined)[] = [];

/**
 * The lock keys under one prefix. A prefix ends with a colon and has no `::`, and one more colon stands behind it: the first `::` of a
 * key ends its prefix, so that no key belongs to two prefixes. A bare name has no `::`.
 *
 * A name stands in a key verbatim, unless it has a brace (which would choose the hash slot) or already looks encoded; then `%`, `{`
 * and `}` are percent-encoded, in a bare name colons too. This is one-to-one.
 */
export class LockKeys {
  /** What all lock keys begin with. */
  readonly start: string;
  /** Whether names stand alone, as other libraries write them. */
  readonly isBare: boolean;
  readonly #encoding: NameEncoding;

  /** @param prefix - the key prefix of the client, and behind it the prefix of the locks */
  constructor(prefix: string, isBare: boolean) {
    this.start = isBare ? prefix : prefix + DELIMITER;
    this.isBare = isBare;
    this.#encoding = isBare ? BARE : BEHIND_PREFIX;
  }

  of(resource: string): ResourceKeys {
    return keysOfLock(this.start + encode(resource, this.#encoding));
  }

  /** The name in a lock key; `undefined` for a key that {@link of} never makes. */
  nameIn(lock: string): string | undefined {
    const name = lock.startsWith(this.start)
      ? decode(lock.slice(this.start.length), this.#encoding)
      : undefined;
    return name === '' ? undefined : name;
  }
}

export function keysOfLock(lock: string): ResourceKeys {
  const slot = slotOf(lock);
  const token = (tokenKeys[slot] ??= `locks:token:{${tagOf(slot)}}`);
  return { lock, token, queue: `{${lock}}:q`, slot };
}

const PREFIX_CHARACTERS = /^[^{}|\p{Cc}\p{Cs}]{0,128}$/u;

/**
 * Reads a prefix. Braces are refused: they would choose the hash slot. Our keys beside the lock keys all have braces, and a lock
 * key has none, so without a prefix they cannot meet either.
 */
export const readPrefix = text(
  "'', or 1 to 128 characters that end with ':', without '::', braces, '|' and control characters, for example 'lock:'",
  /^(?!.*::)(?:[^{}|\p{Cc}\p{Cs}]{0,127}:)?$/u,
);

/**
 * Reads the key prefix of the client with the prefix of the locks behind it.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function lockKeys(keyPrefix: string, prefix: string, what: string): LockKeys {
  const isBare = prefix === '';
  const whole = keyPrefix + prefix;
  if (!PREFIX_CHARACTERS.test(whole) || whole.includes('::')) {
    throw mustBe(what, "at most 128 characters without '::', braces, '|' and control characters", whole);
  }
  return new LockKeys(whole, isBare);
}
