import { readFileSync, writeFileSync } from 'node:fs';
import type { SimulationReport } from './run-schedules.ts';
import type { PlanVariant } from './workload/plan.ts';

/** What docs/simulation.json keeps of the runs of one backend. */
interface Figures {
  readonly schedules: number;
  readonly processorSeconds: number;
  /** The kinds of faults that have happened. */
  readonly faults: readonly string[];
}

/** Adds the figures of a run to those of a file, from which the tables of docs/simulation.md are written. A variant has figures of its own. */
export function addTo(file: string, report: SimulationReport, variant: PlanVariant | undefined): void {
  const { schedules, processorSeconds, faults } = report;
  const kept = JSON.parse(readFileSync(file, 'utf8')) as { readonly backends: Record<string, Figures> };
  const row = variant ?? report.backend;
  const before = kept.backends[row] ?? { schedules: 0, processorSeconds: 0, faults: [] };
  kept.backends[row] = {
    schedules: before.schedules + schedules,
    processorSeconds: Math.round(before.processorSeconds + processorSeconds),
    faults: [...new Set([...before.faults, ...Object.keys(faults)])].toSorted(),
  };
  writeFileSync(file, `${JSON.stringify(kept, undefined, 2)}\n`);
}
