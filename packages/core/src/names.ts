import { Buffer } from 'node:buffer';
import { invalidArgument } from './errors.ts';

/** The longest name, in UTF-8 bytes. */
export const MAX_NAME_BYTES = 512;
const MAX_LABEL_BYTES = 256;
/** No UTF-16 unit takes more than three bytes of UTF-8. */
const BYTES_PER_UNIT = 3;

/**
 * Gives the name back if it is one.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function checkName(name: unknown): string {
  if (typeof name !== 'string') throw invalidArgument(`A lock name must be a string, not ${describe(name)}.`);
  if (name === '') throw invalidArgument('A lock name must not be empty: it takes 1 to 512 UTF-8 bytes.');
  // Two different lone surrogates have the same UTF-8 bytes, so two names would be one lock (docs/spec.md §10.1).
  if (!name.isWellFormed()) {
    throw invalidArgument(
      `The lock name ${JSON.stringify(shorten(name))} has a lone surrogate, which UTF-8 cannot tell from another. ` +
        'Use name.toWellFormed(), or encode the bytes.',
    );
  }
  if (name.length * BYTES_PER_UNIT <= MAX_NAME_BYTES) return name;
  const bytes = Buffer.byteLength(name);
  if (bytes > MAX_NAME_BYTES) {
    throw invalidArgument(
      `The lock name ${JSON.stringify(shorten(name))} has ${bytes} UTF-8 bytes; at most ${MAX_NAME_BYTES} are allowed. ` +
        'Hash the long part.',
    );
  }
  return name;
}

/** Gives the label back if it is one: well-formed, at most 256 UTF-8 bytes, without control characters. */
export function checkLabel(label: unknown): string {
  if (typeof label !== 'string' || !label.isWellFormed() || Buffer.byteLength(label) > MAX_LABEL_BYTES) {
    throw invalidArgument(
      `label must be well-formed text of at most ${MAX_LABEL_BYTES} UTF-8 bytes, not ${describe(label)}.`,
    );
  }
  if (/\p{Cc}/u.test(label)) throw invalidArgument(`label must not have control characters: ${JSON.stringify(label)}.`);
  return label;
}

/** A value as it may stand in a message: its kind, and itself where it is short. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return JSON.stringify(shorten(value));
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  return Array.isArray(value) ? 'an array' : `an object of ${value.constructor?.name || 'no class'}`;
}

function shorten(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}
