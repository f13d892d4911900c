import { randomFillSync } from 'node:crypto';

const BYTES = 16;
const pool = Buffer.allocUnsafeSlow(BYTES * 256);
let used = pool.length;

/** 128 fresh random bits as 22 characters of base64url: the only identity that a store sees. */
export function freshAcquisitionId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += BYTES;
  return pool.toString('base64url', used - BYTES, used);
}
