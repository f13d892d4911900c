import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Of util-linux. */
export const taskset = 'taskset';

/** Which cores the server and its clients run on. */
export interface Pinning {
  readonly server: string;
  readonly clients: string;
}

interface Plan {
  readonly pinning: Pinning | undefined;
  readonly why: string;
}

// Made once: this process itself is pinned by the first that asks.
let plan: Plan | undefined;

/** One core for the server, the others for the clients; `undefined` and why where that cannot be. */
export function planPinning(): Plan {
  plan ??= makePlan();
  return plan;
}

function makePlan(): Plan {
  if (process.platform !== 'linux') return { pinning: undefined, why: 'no taskset on this system' };
  if (spawnSync(taskset, ['--version']).status !== 0) {
    return { pinning: undefined, why: 'taskset (util-linux) is not installed' };
  }
  const [first, ...others] = allowedCores();
  if (first === undefined || others.length === 0) return { pinning: undefined, why: 'only one core' };
  return { pinning: { server: String(first), clients: others.join(',') }, why: '' };
}

/** Moves a running process, with all its threads. */
export function pin(pid: number, cores: string): void {
  const { status, stderr } = spawnSync(taskset, ['-a', '-c', '-p', cores, String(pid)], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`Could not pin process ${pid} to core ${cores}: ${stderr}`);
}

function allowedCores(): number[] {
  const status = readFileSync('/proc/self/status', 'utf8');
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [from = Number.NaN, to = from] = range.split('-').map(Number);
    return Number.isNaN(from) ? [] : Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
