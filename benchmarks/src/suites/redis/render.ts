import { markdownTable, plainTable } from '../../report/table.ts';
import type { Report } from './result.ts';
import { sectionsOf, targetTable } from './tables.ts';
import { judge } from './targets.ts';

const NOISY_LOAD = 0.7;

/** For a terminal. */
export function renderPlain(report: Report, withTargets: boolean): string {
  const parts = sectionsOf(report).map(({ title, table }) => `${title}\n\n${plainTable(table)}`);
  if (withTargets) parts.push(`Targets\n\n${plainTable(targetTable(judge(report)))}`);
  return [headOf(report).join('\n'), ...parts].join('\n\n');
}

/** The section of the README. */
export function renderMarkdown(report: Report): string {
  const parts = sectionsOf(report).map(({ title, table }) => `### ${title}\n\n${markdownTable(table)}`);
  const head = headOf(report).map((line) => `- ${line}`);
  const targets = `### Targets\n\n${markdownTable(targetTable(judge(report)))}`;
  return [head.join('\n'), ...parts, targets].join('\n\n');
}

function headOf({ date, machine, placement, versions, settings }: Report): string[] {
  const { cpu, cores, memoryGb, kernel, load } = machine;
  const noise = load > NOISY_LOAD ? '; NOT QUIET: these figures are noise' : '';
  const versionList = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${date.slice(0, 10)}, ${cpu}, ${cores} cores, ${memoryGb} GB, ${kernel}`,
    `${placement}; load before the start ${load.toFixed(2)}${noise}`,
    versionList.join(', '),
    `${settings.rounds} rounds, medians${settings.quick ? '; QUICK: too short to rely on' : ''}`,
  ];
}
