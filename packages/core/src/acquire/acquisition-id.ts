import { randomBytes } from 'node:crypto';

/** 15 bytes are exactly 20 characters of base64url: many ids can be encoded at once. */
const BYTES = 15;
const CHARACTERS = 20;
const BATCH = 256;

let batch = '';
let used = BATCH * CHARACTERS;

/**
 * The id of a hold that was transferred (docs/spec.md §19.1): the id of the acquisition that had it, and a secret of 120 random bits that
 * only the ticket has. No other id is so long: the length is the mark of what was transferred.
 */
export function transferredId(former: string): string {
  return former + freshAcquisitionId();
}

export function isTransferred(id: string): boolean {
  return id.length === 2 * CHARACTERS;
}

/** The id as anybody may see it: without the secret of a ticket. */
export function shownId(id: string): string {
  return isTransferred(id) ? id.slice(0, CHARACTERS) : id;
}

/** Whether this is an id of core, as anybody may see it: a store may show what another program wrote. */
export function isAcquisitionId(id: string): boolean {
  return /^[\w-]{20}$/u.test(id);
}

/** 120 random bits as 20 characters of base64url: the only identity of an acquisition that a store sees. */
export function freshAcquisitionId(): string {
  if (used === BATCH * CHARACTERS) {
    batch = randomBytes(BYTES * BATCH).toString('base64url');
    used = 0;
  }
  used += CHARACTERS;
  return batch.slice(used - CHARACTERS, used);
}
