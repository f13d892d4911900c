import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../.tools/bench/', import.meta.url));

/** What a run asks for: only a run that asks for the same can be continued. */
export interface Asked {
  readonly rows: readonly string[];
  readonly contenders: readonly string[];
  readonly rounds: number | undefined;
  readonly quick: boolean;
  /** Of all packages: figures of two versions do not go into one report. */
  readonly code: Readonly<Record<string, string>>;
}

interface Part {
  readonly seconds: number;
  readonly result: unknown;
}

interface Kept {
  readonly asked: Asked;
  readonly parts: Record<string, Part>;
  readonly versions: Record<string, string>;
}

/** The parts of a run that are done, in a file, so that a run that broke off can be continued. */
export class Checkpoint {
  readonly #file: string;
  readonly #kept: Kept;

  private constructor(file: string, kept: Kept) {
    this.#file = file;
    this.#kept = kept;
  }

  static begin(suite: string, asked: Asked): Checkpoint {
    return new Checkpoint(fileOf(suite), { asked, parts: {}, versions: {} });
  }

  /** Continues the run of this suite that broke off. Throws when there is none, or when it asked for something else. */
  static resume(suite: string, asked: Asked): Checkpoint {
    const kept = readKept(suite);
    if (kept === undefined) throw new Error(`No run of ${suite} broke off: leave out --resume.`);
    if (JSON.stringify(kept.asked) !== JSON.stringify(asked)) {
      throw new Error(
        `The run of ${suite} that broke off had other options, or measured other code: leave out --resume.`,
      );
    }
    return new Checkpoint(fileOf(suite), kept);
  }

  /** How many parts the run of this suite had done that broke off. */
  static partsLeft(suite: string): number {
    return Object.keys(readKept(suite)?.parts ?? {}).length;
  }

  get versions(): Record<string, string> {
    return this.#kept.versions;
  }

  get(part: string): Part | undefined {
    return this.#kept.parts[part];
  }

  keep(part: string, done: Part): void {
    this.#kept.parts[part] = done;
    mkdirSync(folder, { recursive: true });
    writeFileSync(this.#file, JSON.stringify(this.#kept));
  }

  /** Removes the file: the run is whole. */
  end(): void {
    rmSync(this.#file, { force: true });
  }
}

function readKept(suite: string): Kept | undefined {
  try {
    return JSON.parse(readFileSync(fileOf(suite), 'utf8')) as Kept;
  } catch {
    return undefined;
  }
}

function fileOf(suite: string): string {
  return join(folder, `${suite}.json`);
}
