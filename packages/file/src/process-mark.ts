import { readFileSync, readlinkSync } from 'node:fs';

let own: string | undefined;
let ownSpace: string | undefined;

/** The mark of this process in names of files: its pid, when it started, and in which namespaces both count. */
export function processMark(): string {
  if (own !== undefined) return own;
  const start = startOf(process.pid);
  // Nobody may take this process for another one whose start can be read.
  const isUnknown = start === undefined && process.platform === 'linux';
  own = [process.pid.toString(36), start ?? '0', isUnknown ? '' : space()].join('-');
  return own;
}

/**
 * Whether the process with this mark has certainly ended. `false` proves nothing: it may be a process of another container.
 *
 * @param mark - a mark, or a name that begins with one
 */
export function hasEnded(mark: string): boolean {
  const [pid = '', start = ''] = mark.split('-');
  if (!isOfThisSpace(mark)) return false;
  const id = Number.parseInt(pid, 36);
  try {
    process.kill(id, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
  // The pid may be that of another process by now.
  const startsNow = startOf(id);
  return startsNow !== undefined && startsNow !== start;
}

/** Whether pids and starts mean the same in this mark as here. */
export function isOfThisSpace(mark: string): boolean {
  const [, , itsSpace = ''] = mark.split('-');
  ownSpace ??= space();
  return itsSpace !== '' && itsSpace === ownSpace;
}

/** When a process started, in ticks since the boot; `ended` for one that nobody has waited for yet; `undefined`: not known. */
function startOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program, in brackets, may have spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : Number(fields[19]).toString(36);
  } catch {
    return undefined;
  }
}

/** The namespaces in which a pid and a start are unique; empty where they are not known. */
function space(): string {
  if (process.platform !== 'linux') return process.platform;
  const idOf = (kind: string): string =>
    Number(readlinkSync(`/proc/self/ns/${kind}`).replace(/\D/g, '')).toString(36);
  try {
    const pids = idOf('pid');
    try {
      return `${pids}_${idOf('time')}`;
    } catch {
      return pids; // a kernel without time namespaces
    }
  } catch {
    return '';
  }
}
