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

/** Messages of a client, in the protocol of PostgreSQL, written into one buffer: there are millions of them in a run. */
export class ClientMessages {
  #bytes = Buffer.alloc(4_096);
  #length = 0;

  parse(name: string, text: string): this {
    return this.#message('P', () => this.#text(name).#text(text).#int16(0));
  }

  bind(name: string, values: readonly (string | null)[]): this {
    return this.#message('B', () => {
      this.#text('').#text(name).#int16(0).#int16(values.length);
      for (const value of values) {
        if (value === null) this.#int32(-1);
        else this.#int32(Buffer.byteLength(value)).#write(value);
      }
      return this.#int16(0);
    });
  }

  execute(): this {
    return this.#message('E', () => this.#text('').#int32(0));
  }

  sync(): this {
    return this.#message('S', () => this);
  }

  query(text: string): this {
    return this.#message('Q', () => this.#text(text));
  }

  /** What was written since the last call, until something else is written. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return taken;
  }

  #message(kind: string, body: () => this): this {
    this.#write(kind);
    const at = this.#length;
    this.#int32(0);
    body();
    this.#bytes.writeInt32BE(this.#length - at, at);
    return this;
  }

  #text(text: string): this {
    return this.#write(`${text}\0`);
  }

  #write(text: string): this {
    this.#grow(text.length * 3);
    this.#length += this.#bytes.write(text, this.#length);
    return this;
  }

  #int16(value: number): this {
    this.#grow(2);
    this.#length = this.#bytes.writeInt16BE(value, this.#length);
    return this;
  }

  #int32(value: number): this {
    this.#grow(4);
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
    return this;
  }

  #grow(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#bytes.length + more)]);
  }
}

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
