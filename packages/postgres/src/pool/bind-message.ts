/** A parameter of a prepared statement. Bytes are sent as they are, anything else as the text that SQL has for it. */
export type Value = string | number | bigint | Uint8Array | null | undefined;

/** The messages Execute (of the unnamed portal, without a limit of rows) and Sync. */
const EXECUTE_AND_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4]);

/**
 * The messages Bind, Execute and Sync of PostgreSQL's protocol 3 for a prepared statement, in one buffer: writing one
 * buffer costs the client much less than writing three. The server sends the columns of the result as texts.
 */
export function bindMessage(statement: string, values: readonly Value[]): Buffer {
  const texts = values.map((value) => (value === null || value === undefined ? null : bytesOrText(value)));
  const nameBytes = Buffer.byteLength(statement);
  let size = 1 + 4 + 1 + nameBytes + 1 + 2 + 2 + 2 + 6 * texts.length;
  const sizes = texts.map((value) => (value === null ? 0 : Buffer.byteLength(value)));
  for (const bytes of sizes) size += bytes;
  const message = Buffer.allocUnsafe(size + EXECUTE_AND_SYNC.length);
  message[0] = 0x42;
  let at = message.writeInt32BE(size - 1, 1);
  message[at++] = 0;
  at += message.write(statement, at);
  message[at++] = 0;
  at = message.writeInt16BE(texts.length, at);
  for (const value of texts) at = message.writeInt16BE(value instanceof Uint8Array ? 1 : 0, at);
  at = message.writeInt16BE(texts.length, at);
  texts.forEach((value, index) => {
    at = message.writeInt32BE(value === null ? -1 : (sizes[index] as number), at);
    if (value === null) return;
    if (value instanceof Uint8Array) message.set(value, at);
    else message.write(value, at);
    at += sizes[index] as number;
  });
  at = message.writeInt16BE(0, at);
  message.set(EXECUTE_AND_SYNC, at);
  return message;
}

function bytesOrText(value: string | number | bigint | Uint8Array): string | Uint8Array {
  return value instanceof Uint8Array || typeof value === 'string' ? value : String(value);
}
