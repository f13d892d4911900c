// Redis and Lua work on bytes. Inside the simulated server a string has one character for each byte, so that lengths,
// offsets and comparisons are those of bytes; texts of clients are converted where they enter and leave.

const NOT_ASCII = /[^\0-\x7f]/;

/** The UTF-8 bytes of a text, one character each. */
export function bytesOf(text: string): string {
  return NOT_ASCII.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text;
}

/** The text of which these are the UTF-8 bytes. */
export function textOf(bytes: string): string {
  return NOT_ASCII.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
}
