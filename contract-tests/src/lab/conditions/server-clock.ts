import { execFile } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeDirectory, type ServerConditions } from '@locks/test-servers';

const SOURCE = fileURLToPath(new URL('./shifted-clock.c', import.meta.url));
const NS_PER_MS = 1e6;

/**
 * The wall clock of servers, which can be set forward and back. It reaches programs that ask the C library for the time: Redis, PostgreSQL,
 * MariaDB and Java's; not those of Go, such as etcd.
 */
export class ServerClock implements Disposable {
  /** For {@link underConditions}. */
  readonly conditions: ServerConditions;
  readonly #file: number;
  #offsetMs = 0;

  constructor(library: string, file: string) {
    this.conditions = { env: { LD_PRELOAD: library, LOCKS_CLOCK: file } };
    this.#file = openSync(file, 'w', 0o644);
    this.moveBy(0);
  }

  /** Sets the clock forward, or back with a negative number. */
  moveBy(ms: number): void {
    this.#offsetMs += ms;
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(Math.round(this.#offsetMs * NS_PER_MS)));
    writeSync(this.#file, bytes, 0, bytes.length, 0);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

/** Needs Linux and `gcc`; `undefined` where they are not there. */
export async function makeServerClock(): Promise<ServerClock | undefined> {
  if (process.platform !== 'linux') return undefined;
  const directory = await makeDirectory('clock');
  // Servers that run as another user read both files.
  await chmod(directory, 0o755);
  const library = path.join(directory, 'shifted-clock.so');
  try {
    await promisify(execFile)('gcc', ['-shared', '-fPIC', '-O2', '-o', library, SOURCE]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return new ServerClock(library, path.join(directory, 'offset'));
}
