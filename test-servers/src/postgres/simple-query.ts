import { once } from 'node:events';
import { connect } from 'node:net';
import type { Address } from '@locks/core/conformance/proxy';

export interface QueryOptions {
  /** @defaultValue 'postgres' */
  readonly database?: string;
  /** @defaultValue 10 000 */
  readonly timeoutMs?: number;
}

export type QueryRow = Readonly<Record<string, string | null>>;

/** What the server refused, with its five-character code. */
export class PostgresReplyError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Runs SQL on a connection of its own, by the simple query protocol and without a password, and gives the rows of all
 * its statements as texts. For a test's control of a server, not for speed.
 */
export async function simpleQuery(
  { host, port }: Address,
  sql: string,
  { database = 'postgres', timeoutMs = 10_000 }: QueryOptions = {},
): Promise<QueryRow[]> {
  const socket = connect({ host, port, noDelay: true });
  const timer = setTimeout(() => {
    socket.destroy(new Error(`${host}:${port} did not answer within ${timeoutMs} ms: ${sql}`));
  }, timeoutMs);
  try {
    await once(socket, 'connect');
    socket.write(startupMessage(database));
    const rows: QueryRow[] = [];
    let columns: string[] = [];
    let refusal: PostgresReplyError | undefined;
    let readies = 0;
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of socket) {
      const { messages, left } = split(Buffer.concat([rest, chunk as Buffer]));
      rest = left;
      for (const { kind, body } of messages) {
        if (kind === 'T') columns = columnsOf(body);
        if (kind === 'D') rows.push(rowOf(body, columns));
        if (kind === 'E') refusal ??= errorOf(body);
        if (kind !== 'Z') continue;
        readies += 1;
        if (readies === 1) socket.write(message('Q', Buffer.from(`${sql}\0`)));
      }
      if (readies === 2) break;
    }
    if (refusal) throw refusal;
    if (readies < 2) throw new Error(`${host}:${port} closed the connection before it answered: ${sql}`);
    socket.write(message('X', Buffer.alloc(0)));
    return rows;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

function startupMessage(database: string): Buffer {
  const body = Buffer.from(`\0\x03\0\0user\0postgres\0database\0${database}\0\0`, 'utf8');
  return Buffer.concat([int32(body.length + 4), body]);
}

function message(kind: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(kind), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

interface Message {
  readonly kind: string;
  readonly body: Buffer;
}

function split(bytes: Buffer): { messages: Message[]; left: Buffer } {
  const messages: Message[] = [];
  let at = 0;
  while (at + 5 <= bytes.length) {
    const end = at + 1 + bytes.readInt32BE(at + 1);
    if (end > bytes.length) break;
    messages.push({ kind: String.fromCharCode(bytes[at] as number), body: bytes.subarray(at + 5, end) });
    at = end;
  }
  return { messages, left: bytes.subarray(at) };
}

function columnsOf(body: Buffer): string[] {
  const names: string[] = [];
  let at = 2;
  for (let left = body.readInt16BE(0); left > 0; left -= 1) {
    const end = body.indexOf(0, at);
    names.push(body.toString('utf8', at, end));
    at = end + 1 + 18;
  }
  return names;
}

function rowOf(body: Buffer, columns: readonly string[]): QueryRow {
  let at = 2;
  const values = columns.map((name) => {
    const length = body.readInt32BE(at);
    at += 4 + Math.max(length, 0);
    return [name, length < 0 ? null : body.toString('utf8', at - length, at)] as const;
  });
  return Object.fromEntries(values);
}

function errorOf(body: Buffer): PostgresReplyError {
  const fields = Object.fromEntries(
    body
      .toString('utf8')
      .split('\0')
      .filter((field) => field !== '')
      .map((field) => [field[0], field.slice(1)]),
  );
  return new PostgresReplyError(fields['C'] ?? '', fields['M'] ?? 'The server refused without a word.');
}
