import { execFile } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { makeDirectory, type ServerConditions } from '@locks/test-servers';

const run = promisify(execFile);

/** A file system of its own in memory, small enough to be filled. */
export class SmallDisk implements AsyncDisposable {
  /** For {@link underConditions}. */
  readonly conditions: ServerConditions;
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.conditions = { disk: directory };
  }

  /** Takes all space that is left. */
  fill(): void {
    const file = openSync(this.#filler, 'a');
    try {
      for (let size = 1 << 20; size >= 1; size >>= 1) {
        const bytes = Buffer.alloc(size);
        while (writes(file, bytes));
      }
    } finally {
      closeSync(file);
    }
  }

  /** Gives back what {@link SmallDisk.fill} took. */
  async free(): Promise<void> {
    await rm(this.#filler, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A server that has just been killed may still have files open.
    await run('umount', ['-l', this.#directory]);
  }

  get #filler(): string {
    return path.join(this.#directory, 'filler');
  }
}

/** Needs Linux and root; `undefined` without. */
export async function makeSmallDisk(megabytes: number): Promise<SmallDisk | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const directory = await makeDirectory('disk');
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory]);
  } catch {
    // Root of a container may not mount.
    return undefined;
  }
  await chmod(directory, 0o711);
  return new SmallDisk(directory);
}

/** Whether the whole of it was written. */
function writes(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) === bytes.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
