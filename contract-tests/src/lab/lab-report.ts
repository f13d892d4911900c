import type { NemesisName } from './nemeses.ts';
import type { Workload } from './workloads.ts';

/** What workloads showed under one nemesis. */
export interface NemesisSummary {
  readonly nemesis: NemesisName;
  readonly faults: number;
  /** Acquires and releases. */
  readonly operations: number;
  readonly violations: number;
  readonly longestIdleMs: number;
  /** Resources that nobody could acquire, for three times as long as a hold lasts, after every worker had stopped. `null`: not looked for. */
  readonly ghosts: number | null;
  /** Of the lock-set: elements whose write was acknowledged, and that a later write of a stale holder removed. */
  readonly lostWithoutFence: number | null;
  /** The same where the token was compared; `null` where the backend gives none. */
  readonly lostWithFence: number | null;
}

/** What one workload showed under one nemesis. */
export interface LabResult extends NemesisSummary {
  readonly workload: Workload;
}

/** What `--json` writes for a backend. */
export interface LabReport {
  readonly backend: string;
  readonly seed: number;
  /** As it was asked for. */
  readonly minutes: number;
  /** Where not all nemeses were asked for. */
  readonly nemeses?: readonly NemesisName[];
  /** Whether `cut-one-way` and `blackhole` lost packets in network namespaces. Else the proxies lost data. */
  readonly losesPackets?: boolean;
  readonly operations: number;
  readonly seconds: number;
  readonly results: readonly LabResult[];
}

/** The results of all workloads under each nemesis. */
export function summarise(results: readonly LabResult[]): NemesisSummary[] {
  const names = [...new Set(results.map(({ nemesis }) => nemesis))];
  return names.map((nemesis) => {
    const own = results.filter((result) => result.nemesis === nemesis);
    const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
    const known = (key: 'ghosts' | 'lostWithoutFence' | 'lostWithFence'): number | null => {
      const counts = own.flatMap((result) => result[key] ?? []);
      return counts.length === 0 ? null : sum(counts);
    };
    return {
      nemesis,
      faults: faultsIn(own),
      operations: sum(own.map(({ operations }) => operations)),
      violations: sum(own.map(({ violations }) => violations)),
      longestIdleMs: Math.max(...own.map(({ longestIdleMs }) => longestIdleMs)),
      ghosts: known('ghosts'),
      lostWithoutFence: known('lostWithoutFence'),
      lostWithFence: known('lostWithFence'),
    };
  });
}

/** All workloads of a run see the same faults. */
function faultsIn(results: readonly LabResult[]): number {
  const first = results[0]?.workload;
  const ofOne = results.filter(({ workload }) => workload === first);
  return ofOne.reduce((sum, { faults }) => sum + faults, 0);
}

/** The columns of a table of results, in the terminal and on the page. */
const COLUMNS: Readonly<Record<string, keyof NemesisSummary>> = {
  nemesis: 'nemesis',
  faults: 'faults',
  operations: 'operations',
  violations: 'violations',
  'idle ms': 'longestIdleMs',
  ghosts: 'ghosts',
  lost: 'lostWithoutFence',
  'lost, with the token': 'lostWithFence',
};

export const COLUMN_HEADS = Object.keys(COLUMNS);

/** A row for each nemesis. */
export function rowsOf(results: readonly LabResult[]): string[][] {
  return summarise(results).map((one) => Object.values(COLUMNS).map((column) => String(one[column] ?? '–')));
}

/** A table for the terminal. */
export function tableOf({ backend, results }: LabReport): string {
  const head = ['backend', ...COLUMN_HEADS];
  const rows = rowsOf(results).map((row) => [backend, ...row]);
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => (row[column] ?? '').length)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ');
  return [head, ...rows].map(line).join('\n');
}
