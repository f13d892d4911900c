import { Buffer } from 'node:buffer';

/** A row as the server writes it. */
export type Row = readonly (string | null)[];

/** What the server answers to one statement. */
export interface Outcome {
  readonly rows: readonly Row[];
  /** The name of the command, and how many rows it returned or changed. */
  readonly tag: string;
}

export interface Notification {
  readonly channel: string;
  readonly payload: string;
}

/** An error of the server, as `pg` gives it. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';
  readonly severity: string;
  readonly code: string;

  constructor(code: string, message: string, severity = 'ERROR') {
    super(message);
    this.code = code;
    this.severity = severity;
  }
}

/** Everything that the server has sent up to the next synchronization. */
export interface Answer {
  readonly outcomes: readonly Outcome[];
  readonly error: PostgresError | undefined;
  readonly notifications: readonly Notification[];
}

/** Messages of a client, in the protocol of PostgreSQL. */
export const messages = {
  parse: (name: string, text: string): Buffer => message('P', cString(name), cString(text), int16(0)),
  bind: (name: string, values: readonly (string | null)[]): Buffer =>
    message(
      'B',
      cString(''),
      cString(name),
      int16(0),
      int16(values.length),
      ...values.flatMap((value) => {
        if (value === null) return [int32(-1)];
        const bytes = Buffer.from(value);
        return [int32(bytes.length), bytes];
      }),
      int16(0),
    ),
  execute: message('E', cString(''), int32(0)),
  sync: message('S'),
  query: (text: string): Buffer => message('Q', cString(text)),
};

export function readAnswer(bytes: Uint8Array): Answer {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const outcomes: Outcome[] = [];
  const notifications: Notification[] = [];
  let rows: Row[] = [];
  let error: PostgresError | undefined;
  for (let at = 0; at < all.length; ) {
    const kind = String.fromCharCode(all[at] as number);
    const end = at + 1 + all.readInt32BE(at + 1);
    const body = all.subarray(at + 5, end);
    if (kind === 'D') rows.push(readRow(body));
    else if (kind === 'C') {
      outcomes.push({ rows, tag: body.toString('utf8', 0, body.length - 1) });
      rows = [];
    } else if (kind === 'E') error ??= readError(body);
    else if (kind === 'A') {
      const [channel = '', payload = ''] = body.toString('utf8', 4).split('\0');
      notifications.push({ channel, payload });
    }
    at = end;
  }
  return { outcomes, error, notifications };
}

function readRow(body: Buffer): Row {
  const row: (string | null)[] = [];
  let at = 2;
  for (let left = body.readInt16BE(0); left > 0; left -= 1) {
    const length = body.readInt32BE(at);
    at += 4;
    row.push(length < 0 ? null : body.toString('utf8', at, at + length));
    at += Math.max(0, length);
  }
  return row;
}

function readError(body: Buffer): PostgresError {
  const fields = body.toString('utf8').split('\0');
  const field = (letter: string): string => fields.find((text) => text.startsWith(letter))?.slice(1) ?? '';
  return new PostgresError(field('C'), field('M'), field('V'));
}

function message(kind: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(kind), int32(body.length + 4), body]);
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
