/** A value in Redis's protocol, versions 2 and 3. Maps are flat lists of keys and values. */
export type RespValue = string | number | bigint | boolean | null | RedisReplyError | RespValue[];

/** An error that the server answered with, such as `NOSCRIPT …`. */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError';
  /** The first word: `ERR`, `MOVED`, `NOSCRIPT` … */
  get code(): string {
    return this.message.split(' ', 1)[0] ?? '';
  }
}

export interface Frame {
  /** The first byte: `*`, `$`, `>` … For a command typed inline: `inline`. */
  readonly type: string;
  readonly value: RespValue;
  readonly raw: Buffer;
}

export function encodeCommand(args: readonly (string | number)[]): string {
  const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${String(arg)}\r\n`);
  return `*${args.length}\r\n${parts.join('')}`;
}

/** Cuts a stream, of requests or of replies, into its frames. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that `chunk` completes. Throws when the stream is not Redis's protocol. */
  push(chunk: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    let start = 0;
    for (;;) {
      const read = readFrame(this.#rest, start);
      if (!read) break;
      frames.push({ type: read.type, value: read.value, raw: this.#rest.subarray(start, read.end) });
      start = read.end;
    }
    this.#rest = this.#rest.subarray(start);
    return frames;
  }

  /** Takes the bytes that are not a whole frame yet. */
  takeRest(): Buffer {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}

interface Read {
  readonly type: string;
  readonly value: RespValue;
  readonly end: number;
}

function readFrame(buffer: Buffer, start: number): Read | undefined {
  const lineEnd = buffer.indexOf('\r\n', start);
  if (lineEnd < 0) return undefined;
  const type = String.fromCharCode(buffer[start] ?? 0);
  const line = buffer.toString('utf8', start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (type) {
    case '+':
    case ',':
      return { type, value: line, end };
    case '-':
      return { type, value: new RedisReplyError(line), end };
    case ':':
      return { type, value: Number(line), end };
    case '(':
      return { type, value: BigInt(line), end };
    case '#':
      return { type, value: line === 't', end };
    case '_':
      return { type, value: null, end };
    case '$':
    case '=':
    case '!':
      return readBulk(buffer, type, Number(line), end);
    case '*':
    case '~':
    case '>':
      return readList(buffer, type, Number(line), end);
    case '%':
      return readList(buffer, type, Number(line) * 2, end);
    case '|': {
      // Attributes stand before the value that they describe.
      const attributes = readList(buffer, type, Number(line) * 2, end);
      return attributes && readFrame(buffer, attributes.end);
    }
    default:
      if (!/^[a-z]$/i.test(type)) throw new Error(`Not Redis's protocol: ${JSON.stringify(type + line)}`);
      return { type: 'inline', value: (type + line).trim().split(/\s+/), end };
  }
}

function readBulk(buffer: Buffer, type: string, length: number, start: number): Read | undefined {
  if (length < 0) return { type, value: null, end: start };
  const end = start + length;
  if (buffer.length < end + 2) return undefined;
  const text = buffer.toString('utf8', start, end);
  return { type, value: type === '!' ? new RedisReplyError(text) : text, end: end + 2 };
}

function readList(buffer: Buffer, type: string, length: number, start: number): Read | undefined {
  if (length < 0) return { type, value: null, end: start };
  const items: RespValue[] = [];
  let end = start;
  while (items.length < length) {
    const item = readFrame(buffer, end);
    if (!item) return undefined;
    items.push(item.value);
    end = item.end;
  }
  return { type, value: items, end };
}
