import { text } from '@locks/core/backend';
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

const NEEDS_ENCODING = /[{}]|%(?:25|7B|7D)/;
const ENCODINGS: Record<string, string> = { '%': '%25', '{': '%7B', '}': '%7D' };
const DECODINGS: Record<string, string> = { '%25': '%', '%7B': '{', '%7D': '}' };

/**
 * Encodes a name for a lock key: verbatim, unless it has a brace (which would choose the hash slot) or already looks
 * encoded; then `%`, `{` and `}` are percent-encoded. One-to-one.
 */
export function encodeName(name: string): string {
  return NEEDS_ENCODING.test(name) ? name.replace(/[%{}]/g, (char) => ENCODINGS[char] as string) : name;
}

/** Decodes a name; `undefined` for a text that {@link encodeName} never writes. */
export function decodeName(encoded: string): string | undefined {
  if (!NEEDS_ENCODING.test(encoded)) return encoded;
  const name = encoded.replace(/%(?:25|7B|7D)/g, (code) => DECODINGS[code] as string);
  return encodeName(name) === encoded ? name : undefined;
}

const tokenKeys: (string | undefined)[] = [];

export function keysOf(prefix: string, resource: string): ResourceKeys {
  return keysOfLock(prefix + (NEEDS_ENCODING.test(resource) ? encodeName(resource) : resource));
}

export function keysOfLock(lock: string): ResourceKeys {
  const slot = slotOf(lock);
  const token = (tokenKeys[slot] ??= `locks:token:{${tagOf(slot)}}`);
  return { lock, token, queue: `{${lock}}:q`, slot };
}

/**
 * Reads a prefix. Braces are refused: they would choose the hash slot. Our keys beside the lock keys all have braces, and a lock
 * key has none, so without a prefix they cannot meet either.
 */
export const readPrefix = text(
  "0 to 128 characters without braces, '|' and control characters, for example 'lock:'",
  /^[^{}|\p{Cc}\p{Cs}]{0,128}$/u,
);
