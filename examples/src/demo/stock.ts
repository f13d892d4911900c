import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A shelf that many processes take from: reading and writing are each whole, but nothing ties the two together. */
export class Stock {
  readonly #path: string;

  constructor(directory: string) {
    this.#path = join(directory, 'stock.txt');
  }

  read(): number {
    return Number(readFileSync(this.#path, 'utf8'));
  }

  write(units: number): void {
    // Renamed into place, so that a reader never sees half a number.
    const draft = `${this.#path}.${process.pid}.${Math.random()}`;
    writeFileSync(draft, String(units));
    renameSync(draft, this.#path);
  }
}
