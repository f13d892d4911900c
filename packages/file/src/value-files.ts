import { closeSync, fstatSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from './lock-folder-error.ts';
import { makeFile, newName } from './new-files.ts';
import type { Pointer } from './pointer.ts';

/** How many files of others are kept open. */
const OPEN_FILES = 16;
/** A file is followed by another one at this size, in bytes, and never before it has so many times the bytes of all records. */
const LEAST_BYTES = 4_000_000;
const TIMES_ALL = 4;
/** A file that was not written for so long is followed by another one: after a day others take it for that of a process that has ended. */
const IDLE_MS = 3_600_000;

/** The files that have the values of records. Each process appends to one of its own, and reads those of all. */
export class ValueFiles {
  readonly #folder: string;
  readonly #isShared: boolean;
  /** The files of others, the latest used last. */
  readonly #open = new Map<string, number>();
  /** The files that this process appended to before. */
  readonly #former = new Set<string>();
  #own: { readonly name: string; readonly file: number; offset: number; usedAt: number } | undefined;
  #mostBytes = LEAST_BYTES;

  constructor(folder: string, isShared: boolean) {
    this.#folder = folder;
    this.#isShared = isShared;
  }

  /** The name of the file that this process appends to, once it has one. */
  get ownName(): string | undefined {
    return this.#own?.name;
  }

  isFormer(name: string): boolean {
    return this.#former.has(name);
  }

  /** Whether the own file was not deleted. */
  isInPlace(): boolean {
    return this.#own === undefined || fstatSync(this.#own.file).nlink > 0;
  }

  /** Tells how many bytes all records have: the more, the longer a sweep takes after each new file. */
  noteBytes(bytes: number): void {
    this.#mostBytes = Math.max(LEAST_BYTES, TIMES_ALL * bytes);
  }

  /** Whether the next value begins another file. */
  get isFull(): boolean {
    const { offset = 0, usedAt = Infinity } = this.#own ?? {};
    return offset >= this.#mostBytes || performance.now() - usedAt > IDLE_MS;
  }

  /** Appends a value. No place is used twice, also where a write fails. */
  append(value: Uint8Array): Pick<Pointer, 'writer' | 'offset' | 'length'> {
    if (this.isFull) this.#closeOwn();
    const own = (this.#own ??= this.#create());
    const { offset, name: writer } = own;
    const { length } = value;
    own.offset += length;
    own.usedAt = performance.now();
    for (let done = 0; done < length; )
      done += writeSync(own.file, value, done, length - done, offset + done);
    return { writer, offset, length };
  }

  /** Reads the value of a pointer; `undefined`: it is not there. */
  read({ writer, offset, length }: Pointer): Uint8Array | undefined {
    const file = this.#openFile(writer);
    if (file === undefined) return undefined;
    const value = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const bytes = readSync(file, value, done, length - done, offset + done);
      if (bytes === 0) return undefined;
      done += bytes;
    }
    // A file system that lost its last writes may have zeros in their place; a value begins with a bracket.
    return value[0] === 0 ? undefined : value;
  }

  remove(name: string): void {
    this.#forget(name);
    this.#former.delete(name);
    rmSync(join(this.#folder, name), { force: true });
  }

  close(): void {
    this.#closeOwn();
    for (const name of [...this.#open.keys()]) this.#forget(name);
  }

  #create() {
    const name = newName();
    const file = makeFile(join(this.#folder, name), this.#isShared);
    return { name, file, offset: 0, usedAt: performance.now() };
  }

  #openFile(name: string): number | undefined {
    if (name === this.#own?.name) return this.#own.file;
    let file = this.#open.get(name);
    this.#open.delete(name);
    try {
      file ??= openSync(join(this.#folder, name), 'r');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
    this.#open.set(name, file);
    const [oldest = name] = this.#open.keys();
    if (this.#open.size > OPEN_FILES) this.#forget(oldest);
    return file;
  }

  #forget(name: string): void {
    const file = this.#open.get(name);
    if (file !== undefined) closeSync(file);
    this.#open.delete(name);
  }

  #closeOwn(): void {
    if (this.#own === undefined) return;
    closeSync(this.#own.file);
    this.#former.add(this.#own.name);
    this.#own = undefined;
  }
}
