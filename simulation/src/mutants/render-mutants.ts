import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MutantResult, MutantsReport } from './run-mutants.ts';

const PAGE = join(import.meta.dirname, '../../../docs/simulation.md');
const BEGIN = '<!-- mutants: written by npm run simulate -- --mutants --write -->';
const END = '<!-- end of mutants -->';

/** Puts what was found, and what was not, into the page. */
export function renderMutants(report: MutantsReport): void {
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest = ''] = page.split(BEGIN);
  const [, after] = rest.split(END);
  if (after === undefined) throw new Error(`${PAGE} has no place for the mutants`);
  writeFileSync(PAGE, `${before}${BEGIN}\n\n${tablesOf(report)}\n\n${END}${after}`);
}

function tablesOf({ mutants, seed, schedules }: MutantsReport): string {
  const lines = mutants.filter(({ kind }) => kind === 'line');
  const ofTheSuite = mutants.filter(({ kind }) => kind === 'suite');
  const files = [...new Set(lines.map(({ name }) => name))];
  const groups = [
    ...files.map((file) => [`\`${file}\``, lines.filter(({ name }) => name === file)] as const),
    ['mutants of the suite', ofTheSuite] as const,
    ['**all**', mutants] as const,
  ];
  const rows = groups.filter(([, group]) => group.length > 0).map(([name, group]) => rowOf(name, group));
  return [
    `From seed ${seed}, up to ${schedules} schedules for each:`,
    '',
    '| errors in | planted | cannot be seen | found | after schedules: median | most |',
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
        ({ name, says, unseen }) => `| \`${name}\` | ${says} | ${unseen ?? 'too rare in these schedules'} |`,
      ),
  ].join('\n');
}

function rowOf(name: string, group: readonly MutantResult[]): string {
  const after = group.flatMap(({ foundAfter }) => foundAfter ?? []).sort((a, b) => a - b);
  const unseen = group.filter((one) => one.foundAfter === undefined && one.unseen !== undefined).length;
  const median = after[Math.floor(after.length / 2)] ?? '';
  return `| ${name} | ${group.length} | ${unseen} | ${after.length} | ${median} | ${after.at(-1) ?? ''} |`;
}
