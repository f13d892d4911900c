const table = new Uint16Array(256);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  table[byte] = crc;
}

function crc16OfBytes(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ byte] as number);
  return crc;
}

/** The cluster slot of a key without braces: CRC16 (XMODEM) of its bytes, modulo 16384. */
export function slotOf(key: string): number {
  let crc = 0;
  for (let index = 0; index < key.length; index++) {
    const code = key.charCodeAt(index);
    if (code > 127) return crc16OfBytes(Buffer.from(key)) & 16383;
    crc = ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ code] as number);
  }
  return crc & 16383;
}

const tags: (string | undefined)[] = [];
let tried = 0;

/**
 * The hash tag of a slot: the smallest non-negative integer whose decimal digits hash to it. It is found on demand, since
 * finding all of them takes a few milliseconds.
 */
export function tagOf(slot: number): string {
  let tag = tags[slot];
  while (tag === undefined) {
    const text = String(tried++);
    tags[slotOf(text)] ??= text;
    tag = tags[slot];
  }
  return tag;
}
