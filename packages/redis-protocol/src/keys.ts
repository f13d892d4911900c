import { invalidArgument } from './invalid-argument.ts';
import { slotOf, tagOf } from './slot.ts';

/** The three keys of a resource, all in one hash slot. */
export interface ResourceKeys {
  readonly lock: string;
  readonly token: string;
  readonly queue: string;
  readonly slot: number;
}

/** The key of the readers and permits that hold a resource. */
export function holdersKey({ queue }: ResourceKeys): string {
  return `${queue.slice(0, -1)}h`;
}

const needsEncoding = /[{}]|%(?:25|7B|7D)/;
const encodings: Record<string, string> = { '%': '%25', '{': '%7B', '}': '%7D' };
const decodings: Record<string, string> = { '%25': '%', '%7B': '{', '%7D': '}' };

/**
 * The part of a lock key that stands for a name: the name itself, unless it has a brace (which would choose the hash
 * slot) or already looks encoded; then `%`, `{` and `}` are percent-encoded. One-to-one.
 */
export function encodeName(name: string): string {
  return needsEncoding.test(name) ? name.replace(/[%{}]/g, (char) => encodings[char] as string) : name;
}

/** `undefined` for what {@link encodeName} never writes. */
export function decodeName(encoded: string): string | undefined {
  if (!needsEncoding.test(encoded)) return encoded;
  const name = encoded.replace(/%(?:25|7B|7D)/g, (code) => decodings[code] as string);
  return encodeName(name) === encoded ? name : undefined;
}

const tokenKeys: (string | undefined)[] = [];

export function keysOfLock(lock: string): ResourceKeys {
  const slot = slotOf(lock);
  const token = (tokenKeys[slot] ??= `locks:token:{${tagOf(slot)}}`);
  return { lock, token, queue: `{${lock}}:q`, slot };
}

export function checkPrefix(prefix: string): string {
  if (typeof prefix === 'string' && /^[^{}|\p{Cc}\p{Cs}]{1,128}$/u.test(prefix)) return prefix;
  throw invalidArgument(
    `prefix is ${JSON.stringify(prefix)}: use 1 to 128 characters without braces (they would choose the hash slot), ` +
      "'|' and control characters, for example 'lock:'",
  );
}
