import { Buffer } from 'node:buffer';
import { invalidArgument, mustBe, quote } from './errors.ts';

/** The longest name, in UTF-8 bytes. */
export const MAX_NAME_BYTES = 512;
const MAX_LABEL_BYTES = 256;
/** The most UTF-8 bytes that one UTF-16 unit takes. */
const BYTES_PER_UNIT = 3;

/**
 * Gives a valid name unchanged.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function checkName(name: unknown): string {
  if (typeof name !== 'string' || name === '') {
    throw mustBe('A lock name', `a string of 1 to ${MAX_NAME_BYTES} UTF-8 bytes`, name);
  }
  // Two different lone surrogates have the same UTF-8 bytes, so two names would be one lock (docs/spec.md §10.1).
  if (!name.isWellFormed()) {
    throw invalidArgument(
      `The lock name ${quote(name)} has a lone surrogate, which UTF-8 cannot tell from another. ` +
        'Use name.toWellFormed(), or encode the bytes.',
    );
  }
  if (name.length * BYTES_PER_UNIT <= MAX_NAME_BYTES) return name;
  const bytes = Buffer.byteLength(name);
  if (bytes <= MAX_NAME_BYTES) return name;
  throw invalidArgument(
    `The lock name ${quote(name)} has ${bytes} UTF-8 bytes; at most ${MAX_NAME_BYTES} are allowed. Hash the long part.`,
  );
}

/**
 * The beginning of names of locks that belong to a function of these packages, as the seats of `newestWins`: an application cannot have
 * such a lock (docs/spec.md §10.1).
 */
export const OWN_NAMES = '@locks/';
/**
 * The beginning of the names of locks that tell who waits for whom: the id of a hold follows (docs/spec.md §5.10). `list` leaves them out.
 */
export const WAIT_NAMES = `${OWN_NAMES}waits/`;
/** The option with which a function of these packages makes such a lock. It is registered: several copies of core may be loaded. */
export const OWN_LOCK: unique symbol = Symbol.for('@locks/core/own-lock') as never;

/**
 * Refuses the name of a lock that belongs to a function of these packages, unless that function asks for it.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function refuseOwnName(name: string, options: object | undefined): void {
  if (!name.startsWith(OWN_NAMES) || (options as { [OWN_LOCK]?: true } | undefined)?.[OWN_LOCK] === true)
    return;
  throw invalidArgument(
    `The lock name ${quote(name)} begins with ${OWN_NAMES}, as only locks of functions of these packages do. Choose another name.`,
  );
}

/** Gives a valid label unchanged: well-formed, at most 256 UTF-8 bytes, without control characters. */
export function checkLabel(label: unknown, what: string): string {
  if (
    typeof label !== 'string' ||
    !label.isWellFormed() ||
    Buffer.byteLength(label) > MAX_LABEL_BYTES ||
    /\p{Cc}/u.test(label)
  ) {
    throw mustBe(what, `text of at most ${MAX_LABEL_BYTES} UTF-8 bytes without control characters`, label);
  }
  return label;
}
