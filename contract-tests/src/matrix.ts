/** What contract-tests/generated/matrix.json keeps of the reports of the conformance suite: the outcome of each case on each backend. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type ConformanceReport, conformanceCases, type Outcome } from '@locks/core/conformance';
import type { KeptOutcome } from './server-results.ts';

export const MATRIX_FILE = fileURLToPath(new URL('../generated/matrix.json', import.meta.url));

export interface Matrix {
  readonly backends: readonly string[];
  /** By the id of a case: where it did not pass. */
  readonly exceptions: Readonly<Record<string, readonly Exception[]>>;
}

/** Cases with the same outcome for the same reason. */
interface Exception {
  readonly outcome: Exclude<Outcome, 'passed'> | 'not run';
  readonly reason?: string;
  readonly backends: readonly string[];
}

/** Gathers what reports say. Reasons of failures contain times and seeds, which differ from run to run: they are left out. */
export function matrixOf(reports: readonly ConformanceReport[]): Matrix {
  const exceptions: Record<string, Exception[]> = {};
  for (const { id } of conformanceCases) {
    const groups = new Map<string, Exception & { backends: string[] }>();
    for (const { backend, cases } of reports) {
      const { outcome, reason } = cases.find((one) => one.id === id) ?? { outcome: 'not run' as const };
      if (outcome === 'passed') continue;
      const kept = outcome === 'failed' || reason === undefined ? { outcome } : { outcome, reason };
      const key = JSON.stringify(kept);
      const group = groups.get(key) ?? { ...kept, backends: [] };
      group.backends.push(backend);
      groups.set(key, group);
    }
    if (groups.size > 0) exceptions[id] = [...groups.values()];
  }
  return { backends: reports.map(({ backend }) => backend), exceptions };
}

export function readMatrix(): Matrix {
  return JSON.parse(readFileSync(MATRIX_FILE, 'utf8')) as Matrix;
}

/** The outcome of a case on a backend; `undefined` where it was not run. */
export function outcomeIn({ exceptions }: Matrix, id: string, backend: string): KeptOutcome | undefined {
  const found = exceptions[id]?.find(({ backends }) => backends.includes(backend));
  if (found === undefined) return { outcome: 'passed' };
  const { outcome, reason } = found;
  if (outcome === 'not run') return undefined;
  return reason === undefined ? { outcome } : { outcome, reason };
}
