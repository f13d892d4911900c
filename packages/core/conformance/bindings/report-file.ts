import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConformanceReport } from '../outcome.ts';

/** Writes `<directory>/<backend>.json`. */
export function writeReport(report: ConformanceReport, directory: string): string {
  mkdirSync(directory, { recursive: true });
  const path = pathOf(report, directory);
  writeFileSync(path, `${JSON.stringify(report, undefined, 2)}\n`);
  return path;
}

/** Updates the existing report of the same backend with the cases of a partial run; without a report nothing is written. */
export function amendReport(part: ConformanceReport, directory: string): void {
  const path = pathOf(part, directory);
  if (!existsSync(path)) return;
  const whole = JSON.parse(readFileSync(path, 'utf8')) as ConformanceReport;
  const newer = new Map(part.cases.map((one) => [one.id, one]));
  const cases = whole.cases.map((one) => newer.get(one.id) ?? one);
  writeReport({ ...whole, cases }, directory);
}

function pathOf({ backend }: ConformanceReport, directory: string): string {
  return join(directory, `${backend.replaceAll(/[^\w.-]+/g, '-')}.json`);
}
