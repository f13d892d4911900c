import { Buffer } from 'node:buffer';

const NOTHING = -1;

/** Reads what was sent: numbers begin with their highest byte, and texts, bytes and lists with their length. */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  int(): number {
    this.#at += 4;
    return this.#bytes.readInt32BE(this.#at - 4);
  }

  /** Session and transaction ids are small enough here. */
  long(): number {
    this.#at += 8;
    return Number(this.#bytes.readBigInt64BE(this.#at - 8));
  }

  boolean(): boolean {
    this.#at += 1;
    return this.#bytes[this.#at - 1] === 1;
  }

  bytes(): Buffer {
    const length = Math.max(0, this.int());
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  text(): string {
    return this.bytes().toString('utf8');
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int()) }, read);
  }
}

/** Writes a message, which begins with its own length. */
export class WireWriter {
  readonly #parts: Buffer[] = [];

  int(value: number): this {
    const part = Buffer.alloc(4);
    part.writeInt32BE(value);
    return this.#add(part);
  }

  long(value: number): this {
    const part = Buffer.alloc(8);
    part.writeBigInt64BE(BigInt(value));
    return this.#add(part);
  }

  boolean(value: boolean): this {
    return this.#add(Buffer.from([value ? 1 : 0]));
  }

  bytes(value: Buffer | undefined): this {
    return value === undefined ? this.int(NOTHING) : this.int(value.length).#add(value);
  }

  text(value: string): this {
    return this.bytes(Buffer.from(value));
  }

  list<T>(values: readonly T[], write: (value: T) => void): this {
    this.int(values.length);
    values.forEach(write);
    return this;
  }

  get message(): Buffer {
    const body = Buffer.concat(this.#parts);
    const length = Buffer.alloc(4);
    length.writeInt32BE(body.length);
    return Buffer.concat([length, body]);
  }

  #add(part: Buffer): this {
    this.#parts.push(part);
    return this;
  }
}

/** Takes whole messages out of a stream of bytes. */
export class Messages {
  #pending = Buffer.alloc(0);

  *of(bytes: Buffer): Generator<Buffer> {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    while (this.#pending.length >= 4) {
      const end = 4 + this.#pending.readInt32BE();
      if (this.#pending.length < end) return;
      const message = this.#pending.subarray(4, end);
      this.#pending = this.#pending.subarray(end);
      yield message;
    }
  }
}
