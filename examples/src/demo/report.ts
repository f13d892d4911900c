import type { BackendName } from './backends.ts';
import { grid } from './grid.ts';
import type { Run } from './shift.ts';

export interface Report {
  readonly backend: BackendName;
  readonly place: string;
  readonly workers: number;
  readonly sales: number;
  readonly unlocked: Run;
  readonly locked: Run;
  readonly ok: boolean;
}

export function printReport(report: Report, json: boolean): void {
  console.log(json ? JSON.stringify(figures(report), undefined, 2) : table(report));
}

function figures({ backend, workers, sales, unlocked, locked, ok }: Report): object {
  return { backend, workers, sales, unlocked: row(unlocked), locked: row(locked), ok };
}

function row(
  run: Run,
): Record<'sold' | 'oversold' | 'handoffsPerSecond' | 'waitP50Ms' | 'waitP99Ms', number> {
  return {
    sold: run.sold,
    oversold: run.oversold,
    handoffsPerSecond: Math.round((run.sold / run.ms) * 1_000),
    waitP50Ms: percentile(run.waits, 0.5),
    waitP99Ms: percentile(run.waits, 0.99),
  };
}

/** Of a sorted list; rounded to a hundredth of a millisecond. */
function percentile(sorted: readonly number[], part: number): number {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return Math.round(value * 100) / 100;
}

function table(report: Report): string {
  const { backend, place, workers, sales, ok } = report;
  const crew = backend === 'memory' ? `${workers} tasks of one process` : `${workers} processes`;
  const lines = [
    `${crew} sell ${sales} units at once; the lock is in ${backend} (${place}).`,
    '',
    ...grid([
      ['', 'workers', 'sales', 'oversold', 'handoffs/s', 'p50 wait', 'p99 wait'],
      cells('without a lock', workers, report.unlocked, false),
      cells('with the lock', workers, report.locked, true),
    ]),
    '',
  ];
  if (ok)
    lines.push(
      `Without the lock ${report.unlocked.oversold} units were sold that did not exist; with it, none.`,
    );
  else
    lines.push(
      'This run proves nothing: the locked run was not exact, or the unlocked one did not really run.',
    );
  return lines.join('\n');
}

function cells(title: string, workers: number, run: Run, waited: boolean): string[] {
  const { sold, oversold, handoffsPerSecond, waitP50Ms, waitP99Ms } = row(run);
  const waits = waited ? [String(handoffsPerSecond), `${waitP50Ms} ms`, `${waitP99Ms} ms`] : ['-', '-', '-'];
  return [title, String(workers), String(sold), String(oversold), ...waits];
}
