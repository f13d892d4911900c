import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { contenderNamed, redisContenders } from '../contenders/all.ts';
import { replaceSection } from '../report/readme.ts';
import { renderMarkdown, renderPlain } from './redis/render.ts';
import type { Report } from './redis/result.ts';
import { settingsFor } from './redis/settings.ts';
import { measureRedis, type RowId, rowIds } from './redis/suite.ts';
import { judge } from './redis/targets.ts';

const usage = `usage: bench redis [options]
  --only ROW      only this row, may be repeated: ${rowIds.join(', ')}
  --contender C   only this contender, may be repeated; its floor must be among them for ratios
  --rounds N      rounds of each comparison; default 5
  --quick         short blocks and two rounds: to see that it runs
  --check         also compares with what is asked for, reached or not
  --strict        with --check: exit code 1 when something is not reached
  --json FILE     writes all figures
  --from FILE     shows figures written by --json; measures nothing
  --markdown      prints the results section of the README
  --readme        puts that section into benchmarks/README.md`;

/** `bench redis`: gives the exit code. */
export async function redisSuite(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true },
      contender: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      strict: { type: 'boolean', default: false },
      json: { type: 'string' },
      from: { type: 'string' },
      markdown: { type: 'boolean', default: false },
      readme: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const rounds = values.rounds === undefined ? undefined : wholeNumber(values.rounds);
  const settings = settingsFor({ quick: values.quick, rounds });
  const rows = new Set((values.only ?? rowIds).map(rowNamed));
  const contenders = values.contender?.map(contenderNamed) ?? redisContenders;
  const report =
    values.from === undefined
      ? await measureRedis(settings, { rows, contenders }, (text) => console.error(text))
      : (JSON.parse(readFileSync(values.from, 'utf8')) as Report);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
  if (values.readme) replaceSection('redis', renderMarkdown(report));
  console.log(values.markdown ? renderMarkdown(report) : renderPlain(report, values.check));
  return values.strict && judge(report).some(({ reached }) => !reached) ? 1 : 0;
}

function rowNamed(name: string): RowId {
  const row = rowIds.find((id) => id === name);
  if (row === undefined)
    throw new Error(`There is no row ${JSON.stringify(name)}. Use ${rowIds.join(', ')}.`);
  return row;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--rounds ${text}: use a whole number from 1.`);
  return value;
}
