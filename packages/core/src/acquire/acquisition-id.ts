import { randomBytes } from 'node:crypto';

/** 15 bytes are exactly 20 characters of base64url: many ids can be encoded at once. */
const BYTES = 15;
const CHARACTERS = 20;
const BATCH = 256;

let batch = '';
let used = BATCH * CHARACTERS;

/** 120 random bits as 20 characters of base64url: the only identity of an acquisition that a store sees. */
export function freshAcquisitionId(): string {
  if (used === BATCH * CHARACTERS) {
    batch = randomBytes(BYTES * BATCH).toString('base64url');
    used = 0;
  }
  used += CHARACTERS;
  return batch.slice(used - CHARACTERS, used);
}
