import type { NemesisName } from './nemeses.ts';
import type { Workload } from './workloads.ts';

/** What one workload showed under one nemesis. */
export interface LabResult {
  readonly workload: Workload;
  readonly nemesis: NemesisName;
  readonly faults: number;
  /** Acquires and releases. */
  readonly operations: number;
  readonly violations: number;
  readonly longestIdleMs: number;
  /** Of the lock-set: elements whose write was acknowledged, and that a later write of a stale holder removed. */
  readonly lostWithoutFence: number | null;
  /** The same where the token was compared; `null` where the backend gives none. */
  readonly lostWithFence: number | null;
}

/** What `--json` writes for a backend. */
export interface LabReport {
  readonly backend: string;
  readonly seed: number;
  readonly operations: number;
  readonly seconds: number;
  readonly results: readonly LabResult[];
}

/** The results of all workloads under one nemesis. */
export interface NemesisSummary {
  readonly nemesis: NemesisName;
  readonly faults: number;
  readonly operations: number;
  readonly violations: number;
  readonly longestIdleMs: number;
  readonly lostWithoutFence: number | null;
  readonly lostWithFence: number | null;
}

export function summarise(results: readonly LabResult[]): NemesisSummary[] {
  const names = [...new Set(results.map(({ nemesis }) => nemesis))];
  return names.map((nemesis) => {
    const own = results.filter((result) => result.nemesis === nemesis);
    const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
    const lost = (key: 'lostWithoutFence' | 'lostWithFence'): number | null => {
      const known = own.flatMap((result) => result[key] ?? []);
      return known.length === 0 ? null : sum(known);
    };
    return {
      nemesis,
      faults: Math.max(...own.map(({ faults }) => faults)),
      operations: sum(own.map(({ operations }) => operations)),
      violations: sum(own.map(({ violations }) => violations)),
      longestIdleMs: Math.max(...own.map(({ longestIdleMs }) => longestIdleMs)),
      lostWithoutFence: lost('lostWithoutFence'),
      lostWithFence: lost('lostWithFence'),
    };
  });
}

/** A table for the terminal. */
export function tableOf({ backend, results }: LabReport): string {
  const head = [
    'backend',
    'nemesis',
    'faults',
    'operations',
    'violations',
    'idle ms',
    'lost',
    'lost, fenced',
  ];
  const rows = summarise(results).map((one) => [
    backend,
    one.nemesis,
    String(one.faults),
    String(one.operations),
    String(one.violations),
    String(one.longestIdleMs),
    String(one.lostWithoutFence ?? '–'),
    String(one.lostWithFence ?? '–'),
  ]);
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
