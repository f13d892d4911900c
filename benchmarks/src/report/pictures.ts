import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Chart, pictureLink } from './chart.ts';
import { chartSvg, figureText } from './chart-svg.ts';
import { isNoisy, type ReportHead } from './head.ts';
import type { Section } from './section.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The documents that show pictures. */
const DOCUMENTS = ['README.md', 'languages.md'];

/** What `results/SUITE.json` has: the figures of the suite's pictures, of the run that the documents show. */
interface Results {
  readonly suite: string;
  readonly source: string;
  readonly charts: readonly Chart[];
}

/** Keeps the figures of a report's charts, and draws them. Pictures of rows that this report does not have are removed. */
export function writeResults(head: ReportHead, sections: readonly Section[]): void {
  const charts = sections.flatMap(({ chart }) => chart ?? []);
  const results: Results = { suite: head.suite, source: sourceOf(head, charts), charts };
  mkdirSync(join(root, 'results'), { recursive: true });
  writeFileSync(join(root, `results/${head.suite}.json`), `${JSON.stringify(results, undefined, 2)}\n`);
  writePictures();
}

/** Draws all results, and removes other pictures. */
export function writePictures(): void {
  mkdirSync(join(root, 'pictures'), { recursive: true });
  const pictures = picturesOf(readResults());
  for (const file of otherFiles(pictures)) rmSync(join(root, file));
  for (const [file, text] of pictures) writeFileSync(join(root, file), text);
}

/** Where pictures differ from the results, and documents from either. */
export function problemsOfPictures(): string[] {
  const all = readResults();
  const pictures = picturesOf(all);
  const documents = DOCUMENTS.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const stale = [...pictures]
    .filter(
      ([file, text]) => !existsSync(join(root, file)) || readFileSync(join(root, file), 'utf8') !== text,
    )
    .map(([file]) => `${file} is not what its results say: run npm run update`);
  const charts = all.flatMap(({ suite, charts: of }) => of.map((chart) => ({ suite, chart })));
  return [
    ...stale,
    ...otherFiles(pictures).map((file) => `${file} has no results`),
    ...charts.flatMap(({ suite, chart }) => problemsOfChart(suite, chart, documents)),
  ];
}

/** The table below the picture has the same contenders with the same figures. */
function problemsOfChart(suite: string, chart: Chart, documents: string): string[] {
  const link = pictureLink(suite, chart);
  const at = documents.indexOf(link);
  if (at < 0) return [`no document shows ${link}`];
  if (chart.kind !== 'bars') return [];
  const [table = ''] = /(?:^\|.*\n?)+/m.exec(documents.slice(at)) ?? [];
  const rows = table.split('\n').map((row) => row.split('|').map((cell) => cell.trim()));
  return chart.bars
    .filter(({ name, median }) => {
      const row = rows.find(([, label]) => label?.replace(/ \*$/, '') === name);
      return row?.includes(figureText(chart, median)) !== true;
    })
    .map(({ name }) => `${suite}, ${chart.id}: the table below the picture has another figure of ${name}`);
}

function readResults(): Results[] {
  const folder = join(root, 'results');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Results);
}

function picturesOf(all: readonly Results[]): ReadonlyMap<string, string> {
  return new Map(
    all.flatMap(({ suite, source, charts }) =>
      charts.map((chart) => {
        const name = `${suite}-${chart.id}`;
        return [`pictures/${name}.svg`, chartSvg(name, chart, source)] as const;
      }),
    ),
  );
}

function otherFiles(pictures: ReadonlyMap<string, string>): string[] {
  const folder = join(root, 'pictures');
  const files = existsSync(folder) ? readdirSync(folder).map((file) => `pictures/${file}`) : [];
  return files.filter((file) => !pictures.has(file));
}

function sourceOf({ date, machine, settings }: ReportHead, charts: readonly Chart[]): string {
  const hasSpread = charts.some(
    (chart) => chart.kind === 'bars' && chart.bars.some(({ least }) => least !== undefined),
  );
  const medians = `medians of ${settings.rounds} rounds${hasSpread ? ', least to most' : ''}`;
  const rounds = settings.rounds > 1 ? medians : '1 round';
  const doubts = [...(isNoisy(machine) ? ['NOT QUIET'] : []), ...(settings.quick ? ['QUICK'] : [])];
  return [date.slice(0, 10), `${machine.cpu}, ${machine.cores} cores`, rounds, ...doubts].join('; ');
}
