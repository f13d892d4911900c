import { randomFillSync } from 'node:crypto';

const randomPool = Buffer.alloc(6 * 128);
let randomUsed = randomPool.length;

/** The id of a write: 48 random bits, which no other write of the same row will ever have. */
export function freshVersion(): number {
  if (randomUsed === randomPool.length) {
    randomFillSync(randomPool);
    randomUsed = 0;
  }
  randomUsed += 6;
  return randomPool.readUIntBE(randomUsed - 6, 6) + 1;
}
