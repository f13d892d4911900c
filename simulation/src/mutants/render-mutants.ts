import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OUT_OF_REACH } from './suite-reach.ts';
import type { MutantResult, MutantsReport } from './run-mutants.ts';

const PAGE = join(import.meta.dirname, '../../../docs/generated/simulation-mutants.md');
const LINES = 'mutants: written by npm run simulate -- --mutants --write';
const SUITE = "mutants of the suite: written by npm run simulate -- --mutants --only 'suite ' --write";

/** Puts what was found, and what was not, into the page: of lines, of the suite, or of both. */
export function renderMutants(report: MutantsReport): void {
  const lines = report.mutants.filter(({ kind }) => kind === 'line');
  const ofTheSuite = report.mutants.filter(({ kind }) => kind === 'suite');
  if (lines.length > 0)
    write(
      LINES,
      tablesOf(report, lines, 'errors in', ({ name }) => `\`${name}\``),
    );
  if (ofTheSuite.length > 0)
    write(
      SUITE,
      tablesOf(report, ofTheSuite, 'group', ({ group }) => group ?? 'others'),
    );
}

function write(section: string, text: string): void {
  const page = readFileSync(PAGE, 'utf8');
  const begin = `<!-- ${section} -->`;
  const end = '<!-- end of mutants -->';
  const [before, rest = ''] = page.split(begin);
  const at = rest.indexOf(end);
  if (at < 0) throw new Error(`${PAGE} has no place for the ${section}`);
  writeFileSync(PAGE, `${before}${begin}\n\n${text}\n\n${rest.slice(at)}`);
}

function tablesOf(
  { seed, schedules }: MutantsReport,
  mutants: readonly MutantResult[],
  heading: string,
  groupOf: (mutant: MutantResult) => string,
): string {
  const groups = new Map<string, MutantResult[]>();
  for (const mutant of mutants) {
    const group = groupOf(mutant);
    groups.set(group, [...(groups.get(group) ?? []), mutant]);
  }
  const rows = [...groups, ['**all**', mutants] as const].map(([name, group]) => rowOf(name, group));
  return [
    `From seed ${seed}, up to ${schedules} schedules for each:`,
    '',
    `| ${heading} | planted | cannot be seen | found | after schedules: median | most |`,
    '|---|---|---|---|---|---|',
    ...rows,
    '',
    'Not found:',
    '',
    '| where | what goes wrong | why it is not found |',
    '|---|---|---|',
    ...mutants
      .filter(({ foundAfter }) => foundAfter === undefined)
      .map(
        ({ name, says, unseen, group }) =>
          `| \`${name}\` | ${says} | ${unseen ?? OUT_OF_REACH[group ?? ''] ?? 'too rare in these schedules'} |`,
      ),
  ].join('\n');
}

function rowOf(name: string, group: readonly MutantResult[]): string {
  const after = group.flatMap(({ foundAfter }) => foundAfter ?? []).sort((a, b) => a - b);
  const unseen = group.filter((one) => one.foundAfter === undefined && one.unseen !== undefined).length;
  const median = after[Math.floor(after.length / 2)] ?? '';
  return `| ${name} | ${group.length} | ${unseen} | ${after.length} | ${median} | ${after.at(-1) ?? ''} |`;
}
