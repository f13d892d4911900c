import type { Code } from '../measure/code.ts';
import type { Machine } from '../measure/machine.ts';

/** The head of every report. */
export interface ReportHead {
  readonly schema: 1;
  readonly suite: string;
  readonly date: string;
  readonly machine: Machine;
  readonly placement: string;
  readonly pinned: boolean;
  readonly versions: Readonly<Record<string, string>>;
  readonly settings: { readonly rounds: number; readonly quick: boolean };
  /** What was measured of this repository. */
  readonly code?: Code;
  /** What other pages reckon with. */
  readonly figures?: unknown;
  /** How long each row or contender took. */
  readonly seconds?: Readonly<Record<string, number>>;
  /** What was asked for and broke off, and why. */
  readonly failures?: readonly string[];
  /** Who could not take part, and why. */
  readonly absent?: readonly string[];
}

/**
 * What every report begins with.
 *
 * @param versions - of the servers and of the packages that took part
 */
export function reportHead<const S extends string>(
  suite: S,
  machine: Machine,
  placement: string,
  ...versions: readonly Readonly<Record<string, string>>[]
): Omit<ReportHead, 'settings'> & { readonly suite: S } {
  return {
    schema: 1,
    suite,
    date: new Date().toISOString(),
    machine,
    placement,
    pinned: !placement.includes('NOT PINNED'),
    versions: Object.assign({ node: process.versions.node }, ...versions) as Record<string, string>,
  };
}

const NOISY_LOAD = 0.7;

/** Whether something else ran on the machine. */
export function isNoisy({ load }: Pick<Machine, 'load'>): boolean {
  return load > NOISY_LOAD;
}

/** How busy the machine was, and what that means for the figures. */
function loadText(machine: Machine): string {
  const load = `load before the start ${machine.load.toFixed(2)}`;
  return isNoisy(machine) ? `${load}; only ratios within a table mean something` : load;
}

export function headLines({
  date,
  machine,
  placement,
  versions,
  settings,
  failures = [],
}: ReportHead): string[] {
  const { cpu, cores, memoryGb, kernel } = machine;
  const versionList = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${date.slice(0, 10)}, ${cpu}, ${cores} cores, ${memoryGb} GB, ${kernel}`,
    `${placement}; ${loadText(machine)}`,
    versionList.join(', '),
    `${settings.rounds} rounds, medians${settings.quick ? '; QUICK: too short to rely on' : ''}`,
    ...failures.map((failure) => `FAILED: ${failure}`),
  ];
}
