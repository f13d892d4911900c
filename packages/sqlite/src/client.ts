import { readlinkSync } from 'node:fs';

/** One backend object among all that use the file. */
export interface Client {
  /** Random: tells its waiters from all others in the file. */
  readonly id: number;
  readonly pid: number;
  /** Where `pid` means something: the pid namespace. Empty when it is not known. */
  readonly pidSpace: string;
}

export function thisClient(): Client {
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
 * Whether the process of a client is certainly no more. False proves nothing: its pid may have been given to another,
 * or belong to another container. Then its silence tells.
 */
export function processHasEnded(row: Readonly<Record<string, unknown>>, self: Client): boolean {
  if (row.client === self.id || row.pid_space !== self.pidSpace || self.pidSpace === '') return false;
  try {
    process.kill(Number(row.pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
