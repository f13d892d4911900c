import { readdirSync, readFileSync } from 'node:fs';

/**
 * Sends a signal to a process group, and on Linux to every process whose environment has the mark: also to those that have
 * left the group.
 */
export function signalAll(group: number | undefined, mark: string, signal: NodeJS.Signals): void {
  if (group !== undefined) send(-group, signal);
  for (const pid of marked(mark)) send(pid, signal);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

function marked(mark: string): number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid && environmentOf(pid).includes(`\0${mark}\0`));
  } catch {
    return [];
  }
}

function environmentOf(pid: number): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`;
  } catch {
    return '';
  }
}
