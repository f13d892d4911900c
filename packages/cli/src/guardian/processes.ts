import { readdirSync, readFileSync } from 'node:fs';

/** The variables in which a command finds the id of its lock, and those of all locks that it runs under. */
export const ID_VARIABLE = 'LOCK_ID';
export const IDS_VARIABLE = 'LOCK_IDS';

/**
 * The processes of a command: its process group, and on Linux every process whose environment has the id of the lock: also
 * those that have left the group, and those of a `locks run` inside.
 */
export class CommandProcesses {
  /** Once the command runs. */
  group: number | undefined;
  readonly #id: string;

  constructor(id: string) {
    this.#id = id;
  }

  /** SIGTERM, once to each. An inner `locks run` passes it on to its own command. */
  askToEnd(): void {
    if (this.group !== undefined) send(-this.group, 'SIGTERM');
    for (const { pid, isInner, isInGroup } of this.#found()) if (!isInner && !isInGroup) send(pid, 'SIGTERM');
  }

  /** SIGKILL, also to the commands of an inner `locks run`. */
  kill(): void {
    if (this.group !== undefined) send(-this.group, 'SIGKILL');
    // A process that was started while the others were looked for is found the next time.
    for (let round = 0; round < 3; round += 1) for (const { pid } of this.#found()) send(pid, 'SIGKILL');
  }

  /** Whether one of them runs. One that has ended, and whose parent has not noticed, does not. */
  get areLeft(): boolean {
    if (process.platform === 'linux') return this.#found().length > 0;
    return this.group !== undefined && send(-this.group, 0);
  }

  #found(): { pid: number; isInGroup: boolean; isInner: boolean }[] {
    return processIds().flatMap((pid) => {
      const [state = 'X', , group] = readProc(pid, 'stat').split(') ').at(-1)?.split(' ') ?? [];
      if (/[ZX]/.test(state) || pid === process.pid) return [];
      const isInGroup = Number(group) === this.group;
      const environment = `\0${readProc(pid, 'environ')}`;
      const isOwn = environment.includes(`\0${ID_VARIABLE}=${this.#id}\0`);
      const [, ids = ''] = environment.split(`\0${IDS_VARIABLE}=`);
      const isInner = !isOwn && (ids.split('\0')[0] ?? '').split(' ').includes(this.#id);
      return isInGroup || isOwn || isInner ? [{ pid, isInGroup, isInner }] : [];
    });
  }
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // It has ended.
    return false;
  }
}

function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0);
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
