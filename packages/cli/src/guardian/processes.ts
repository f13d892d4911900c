import { readdirSync, readFileSync } from 'node:fs';

/** The variables in which a command finds the id of its lock, and those of all locks that it runs under. */
export const ID_VARIABLE = 'LOCK_ID';
export const IDS_VARIABLE = 'LOCK_IDS';

/**
 * The processes of a command: its process group, and on Linux every process whose environment has the id of the lock: also
 * those that have left the group, and those of a `locks run` inside.
 */
export class CommandProcesses {
  /** The process group of the command; `undefined` until the command runs. */
  group: number | undefined;
  readonly #id: string;

  constructor(id: string) {
    this.#id = id;
  }

  /** Sends SIGTERM, once to each process. An inner `locks run` passes it on to its own command. */
  askToEnd(): void {
    if (this.group !== undefined) send(-this.group, 'SIGTERM');
    for (const { pid, isInner } of this.#marked())
      if (!isInner && !isIn(this.group, pid)) send(pid, 'SIGTERM');
  }

  /** Sends SIGKILL, also to the commands of an inner `locks run`. */
  kill(): void {
    if (this.group !== undefined) send(-this.group, 'SIGKILL');
    // A process that starts during one search is found by the next one.
    for (let round = 0; round < 3; round += 1) {
      const marked = this.#marked();
      for (const { pid } of marked) send(pid, 'SIGKILL');
      if (marked.length === 0) return;
    }
  }

  /** Whether a process of the command runs. A zombie, whose parent has not noticed its end, does not. */
  get areLeft(): boolean {
    const { group } = this;
    const hasGroup = group !== undefined && send(-group, 0);
    if (process.platform !== 'linux') return hasGroup;
    return (hasGroup && processIds().some((pid) => isIn(group, pid))) || this.#marked().length > 0;
  }

  /** The processes with the id of the lock in their environment, which is empty when a process has ended. */
  #marked(): MarkedProcess[] {
    return processIds().flatMap((pid): MarkedProcess[] => {
      const environment = `\0${readProc(pid, 'environ')}`;
      if (!environment.includes(this.#id)) return [];
      if (environment.includes(`\0${ID_VARIABLE}=${this.#id}\0`)) return [{ pid, isInner: false }];
      const [, ids = ''] = environment.split(`\0${IDS_VARIABLE}=`);
      return (ids.split('\0')[0] ?? '').split(' ').includes(this.#id) ? [{ pid, isInner: true }] : [];
    });
  }
}

interface MarkedProcess {
  readonly pid: number;
  /** `true`: the process belongs to the command of an inner `locks run`. */
  readonly isInner: boolean;
}

/** Tells whether a process runs and is in a group. */
function isIn(group: number | undefined, pid: number): boolean {
  const [state = '', , itsGroup] = readProc(pid, 'stat').split(') ').at(-1)?.split(' ') ?? [];
  return Number(itsGroup) === group && !/[ZX]/.test(state);
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // The process has ended.
    return false;
  }
}

function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid);
  } catch {
    return [];
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
