import { readlinkSync } from 'node:fs';

/** One backend object among all that use the file. */
export interface SqliteClient {
  /** A random number that marks the client's waiters in the file. */
  readonly id: number;
  readonly pid: number;
  /** The pid namespace, in which `pid` is unique. Empty when it is not known. */
  readonly pidSpace: string;
}

export function thisClient(): SqliteClient {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  const id = (high >>> 12) * 2 ** 32 + low;
  return { id, pid: process.pid, pidSpace: pidSpace() };
}

function pidSpace(): string {
  if (process.platform !== 'linux') return process.platform;
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/**
 * Whether the process of a client has certainly ended. `false` proves nothing: the pid may have been given to another
 * process, or belong to another container. Such a client is recognised as dead by its silence.
 */
export function processHasEnded(row: Readonly<Record<string, unknown>>, self: SqliteClient): boolean {
  if (row.client === self.id || row.pid_space !== self.pidSpace || self.pidSpace === '') return false;
  try {
    process.kill(Number(row.pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
