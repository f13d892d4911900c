import { createHash } from 'node:crypto';
import type { LockError } from '@locks/core';
import { invalidArgument } from '@locks/core/backend';

/** The longest name that core accepts, in bytes. */
const MAX_BYTES = 512;
const MAX_SCOPE_BYTES = 128;
/** The length of the readable beginning of a long name, in UTF-16 units of at most three bytes each. */
const READABLE_UNITS = 100;
/** The mark before a hash. No escaped name contains the mark: in one, `25` or `u` follows every `%`. */
const HASH_MARK = '%~';

/**
 * Converts any JavaScript string to a resource name of core, and back. Different names never collide: `%` becomes `%25`, a
 * lone surrogate `%uD800`, and a name that is too long becomes its beginning and its SHA-256.
 */
export class ResourceNames {
  /** The beginning of every resource name of the scope. */
  readonly prefix: string;

  constructor(scope: string) {
    if (typeof scope !== 'string' || !scope.isWellFormed() || scope === '') throw badScope(scope);
    // An encoded scope contains no colon: the first colon of a resource name ends it.
    this.prefix = `${encodeURIComponent(scope)}:`;
    if (this.prefix.length > MAX_SCOPE_BYTES) throw badScope(scope);
  }

  resourceOf(name: string): string {
    const resource = this.prefix + escape(name);
    if (Buffer.byteLength(resource) <= MAX_BYTES) return resource;
    const digest = createHash('sha256').update(Buffer.from(name, 'utf16le')).digest('base64url');
    return `${this.prefix}${escape(name.slice(0, READABLE_UNITS))}${HASH_MARK}${digest}`;
  }

  /** The name of a resource; for a hashed name its beginning and an ellipsis, since the store does not have the rest. */
  nameOf(resource: string): string {
    const [head = '', digest] = resource.slice(this.prefix.length).split(HASH_MARK);
    return digest === undefined ? unescape(head) : `${unescape(head)}…`;
  }
}

function escape(name: string): string {
  // With the flag `u` only a lone surrogate matches.
  return name.replace(/[%\p{Surrogate}]/gu, (unit) => (unit === '%' ? '%25' : `%u${hex(unit)}`));
}

function unescape(text: string): string {
  return text.replace(/%(?:25|u([0-9A-F]{4}))/g, (_, code: string | undefined) =>
    code === undefined ? '%' : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

function hex(unit: string): string {
  return unit.charCodeAt(0).toString(16).toUpperCase();
}

function badScope(scope: unknown): LockError {
  return invalidArgument(
    `scope must be well-formed text, percent-encoded 1 to ${MAX_SCOPE_BYTES - 1} bytes, not ${JSON.stringify(scope)}.`,
  );
}
