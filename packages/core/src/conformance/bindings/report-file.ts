import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConformanceReport } from '../outcome.ts';

/** Writes `<directory>/<backend>.json` and gives its path. */
export function writeReport(report: ConformanceReport, directory: string): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${report.backend.replaceAll(/[^\w.-]+/g, '-')}.json`);
  writeFileSync(path, `${JSON.stringify(report, undefined, 2)}\n`);
  return path;
}
