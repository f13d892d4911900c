import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { buildFolder, type Language, languages, type Library } from '../languages/drivers.ts';
import {
  type Driver,
  type Figures,
  type Place,
  playIdle,
  playKill,
  playRenewal,
  playRound,
  type Scenario,
  scenarios,
} from '../languages/scenarios.ts';
import { describeMachine } from '../measure/machine.ts';
import { Progress } from '../measure/progress.ts';
import { median } from '../measure/quantiles.ts';
import { spreadOf } from '../report/chart.ts';
import { whole } from '../report/figures.ts';
import { reportHead, type ReportHead } from '../report/head.ts';
import { writeResults } from '../report/pictures.ts';
import { renderMarkdown, renderPlain } from '../report/render.ts';
import type { Section } from '../report/section.ts';
import { writeTables } from '../report/tables-page.ts';
import { openRedisStage } from './redis/redis-testbed.ts';

/** What a library did in a scenario, round by round. */
interface Result {
  readonly scenario: string;
  readonly language: string;
  readonly library: string;
  readonly floor: string;
  readonly rounds: readonly Figures[];
}

/** A library's figure of a row that is no loop. */
interface Single {
  readonly language: string;
  readonly library: string;
  readonly values: readonly number[];
}

interface LanguagesReport extends ReportHead {
  readonly suite: 'languages';
  readonly settings: Settings;
  /** Languages whose driver could not be built, and why. */
  readonly absent: readonly string[];
  readonly results: readonly Result[];
  readonly kill: readonly Single[];
  readonly idle: readonly Single[];
  readonly renewal: readonly Single[];
}

interface Settings {
  readonly quick: boolean;
  readonly rounds: number;
  readonly leadInMs: number;
  readonly forMs: number;
  readonly kills: number;
  readonly waiters: number;
  readonly leases: number;
}

const full: Settings = {
  quick: false,
  rounds: 3,
  leadInMs: 2_000,
  forMs: 2_000,
  kills: 7,
  waiters: 1_000,
  leases: 10_000,
};
const quick: Settings = {
  quick: true,
  rounds: 1,
  leadInMs: 200,
  forMs: 500,
  kills: 1,
  waiters: 100,
  leases: 500,
};
const KILLED_TTL_MS = 2_500;
const IDLE_MS = 5_000;

const rows = [...scenarios.map(({ id }) => id), 'kill', 'idle', 'renewal'];

const usage = `usage: bench languages [options]
  --only ROW      only this row, may be repeated: ${rows.join(', ')}
  --language L    only this language, may be repeated: ${languages.map(({ name }) => name).join(', ')}
  --quick         one short round: to see that it runs
  --json FILE     writes all figures
  --from FILE     shows figures written by --json; measures nothing
  --readme        writes the tables into benchmarks/tables/languages.md, their figures into benchmarks/results,
                  their pictures into benchmarks/pictures, and the date and load into benchmarks/README.md`;

/** `bench languages`: lock libraries of several languages on one Redis. Gives the exit code. */
export async function languagesSuite(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true },
      language: { type: 'string', multiple: true },
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      from: { type: 'string' },
      readme: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const unknown = [
    ...(values.only ?? []).filter((row) => !rows.includes(row)),
    ...(values.language ?? []).filter((name) => languages.every((language) => language.name !== name)),
  ];
  if (values.help || unknown.length > 0) {
    for (const name of unknown) console.error(`There is no row or language ${JSON.stringify(name)}.`);
    console.log(usage);
    return unknown.length > 0 ? 2 : 0;
  }
  const chosen = languages.filter(({ name }) => values.language?.includes(name) ?? true);
  const report =
    values.from === undefined
      ? await measure(values.quick ? quick : full, new Set(values.only ?? rows), chosen)
      : (JSON.parse(readFileSync(values.from, 'utf8')) as LanguagesReport);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
  const sections = sectionsOf(report);
  console.log(renderPlain(report, sections));
  for (const absent of report.absent) console.log(`\nABSENT: ${absent}`);
  if (values.readme) {
    writeTables('languages', renderMarkdown(report, sections, []));
    writeResults(report, sections);
  }
  return (report.failures ?? []).length > 0 ? 1 : 0;
}

async function measure(
  settings: Settings,
  wanted: ReadonlySet<string>,
  chosen: readonly Language[],
): Promise<LanguagesReport> {
  const machine = describeMachine();
  const progress = new Progress((text) => console.error(text));
  const absent: string[] = [];
  const drivers: Driver[] = [];
  for (const language of chosen) {
    progress.report(`building ${language.name}`);
    const built = language.build(buildFolder());
    if (typeof built === 'string') absent.push(`${language.name}: ${built}`);
    else drivers.push({ language, command: built });
  }
  await using testbed = await openRedisStage();
  const { control, versions } = testbed.server;
  const { host } = new URL(testbed.url);
  const place: Place = { control, address: host, cores: testbed.pinning?.clients };
  const all = drivers.flatMap((driver) => driver.language.libraries.map((library) => ({ driver, library })));
  const results: Result[] = [];
  for (const scenario of scenarios.filter(({ id }) => wanted.has(id))) {
    const rounds = new Map<Library, Figures[]>();
    const players = all.filter(({ library }) => takesPart(library, scenario));
    for (let round = 0; round < settings.rounds; round += 1) {
      for (const { driver, library } of round % 2 === 0 ? players : players.toReversed()) {
        await progress.part(`${scenario.id}: ${library.name}`, async () => {
          const figures = await playRound(place, driver, library, scenario, settings);
          rounds.set(library, [...(rounds.get(library) ?? []), figures]);
        });
      }
    }
    for (const { driver, library } of players) {
      const { name, floor } = library;
      const of = rounds.get(library) ?? [];
      if (of.length === 0) continue;
      results.push({
        scenario: scenario.id,
        language: driver.language.name,
        library: name,
        floor,
        rounds: of,
      });
    }
  }
  const locksOnly = all.filter(({ library }) => !library.name.startsWith('raw '));
  const single = async (
    id: string,
    players: typeof all,
    play: (driver: Driver, library: Library) => Promise<number>,
    times = 1,
  ): Promise<Single[]> => {
    if (!wanted.has(id)) return [];
    const singles: Single[] = [];
    for (const { driver, library } of players) {
      const values: number[] = [];
      await progress.part(`${id}: ${library.name}`, async () => {
        for (let time = 0; time < times; time += 1) values.push(await play(driver, library));
      });
      if (values.length > 0) singles.push({ language: driver.language.name, library: library.name, values });
    }
    return singles;
  };
  return {
    ...reportHead('languages', machine, testbed.placement, versions),
    settings,
    absent,
    results,
    kill: await single(
      'kill',
      locksOnly,
      (driver, library) => playKill(place, driver, library, KILLED_TTL_MS),
      settings.kills,
    ),
    idle: await single('idle', locksOnly, (driver, library) =>
      playIdle(place, driver, library, settings.waiters, IDLE_MS),
    ),
    renewal: await single(
      'renewal',
      locksOnly.filter(({ library }) => library.renews),
      (driver, library) => playRenewal(place, driver, library, settings.leases),
    ),
    failures: progress.failures,
  };
}

/** The bare clients poll, which is no way to wait: they are in the rows without waiting only. */
function takesPart(library: Library, { id, kind }: Scenario): boolean {
  const isFloor = library.name === library.floor;
  return library.kinds.includes(kind) && (!isFloor || id === 'sequential' || id === 'keys');
}

function sectionsOf(report: LanguagesReport): Section[] {
  const { results, settings } = report;
  return [
    ...scenarios.flatMap((scenario) => {
      const of = results.filter((result) => result.scenario === scenario.id);
      return of.length === 0 ? [] : [scenarioSection(scenario, of)];
    }),
    ...singleSection('kill', 'From the end of a killed holder’s lock to the next entry, ms', report.kill, 1),
    ...singleSection(
      'idle',
      `${settings.waiters} waiters on one held lock: commands/s in the server`,
      report.idle,
      0,
    ),
    ...singleSection(
      'renewal',
      `${settings.leases} locks of 6 s kept alive: commands/s in the server`,
      report.renewal,
      0,
    ),
  ];
}

function scenarioSection({ id, title, kind }: Scenario, results: readonly Result[]): Section {
  const typical = (result: Result, figure: (figures: Figures) => number): number =>
    median(result.rounds.map(figure));
  return {
    title,
    chart: {
      kind: 'bars',
      id,
      title,
      unit: 'entries/s',
      better: 'more',
      digits: 0,
      bars: results.map(({ library, language, rounds }) => ({
        ...contenderOf(library, language),
        ...spreadOf(rounds.map(({ perSecond }) => perSecond)),
      })),
    },
    table: {
      heading: [
        '',
        'entries/s',
        '× own floor',
        ...(kind === 'readers' ? ['of them writes/s'] : []),
        'wait p50 ms',
        'p99 ms',
        'longest ms',
        'fair',
        'starved',
        'server µs',
        'overlaps',
      ],
      lines: results.map((result) => {
        const floor = results.find(({ library }) => library === result.floor);
        const speed = typical(result, ({ perSecond }) => perSecond);
        const fair = typical(result, (figures) => figures.fair);
        const ratios = result.rounds.map(
          ({ perSecond }, round) => perSecond / (floor?.rounds[round]?.perSecond ?? Number.NaN),
        );
        return [
          contenderOf(result.library, result.language).name,
          whole(speed),
          floor === undefined || floor === result ? '' : median(ratios).toFixed(2),
          ...(kind === 'readers'
            ? [whole(typical(result, ({ writesPerSecond = 0 }) => writesPerSecond))]
            : []),
          typical(result, ({ waitP50Ms }) => waitP50Ms).toFixed(2),
          typical(result, ({ waitP99Ms }) => waitP99Ms).toFixed(1),
          typical(result, ({ longestWaitMs }) => longestWaitMs).toFixed(0),
          Number.isFinite(fair) ? fair.toFixed(2) : '∞',
          whole(typical(result, ({ starved }) => starved)),
          whole(typical(result, ({ serverMicros }) => serverMicros)),
          String(result.rounds.reduce((sum, { overlaps }) => sum + overlaps, 0)),
        ];
      }),
    },
    note:
      kind === 'readers'
        ? 'fair: most / least entries of a reader. starved: who never entered, the writer included.'
        : 'fair: most / least entries of a waiter. starved: waiters that never entered.',
  };
}

function singleSection(id: string, title: string, singles: readonly Single[], digits: number): Section[] {
  if (singles.length === 0) return [];
  const text = (value: number): string => (digits === 0 ? whole(value) : value.toFixed(digits));
  return [
    {
      title,
      chart: {
        kind: 'bars',
        id,
        title,
        unit: id === 'kill' ? 'ms' : 'commands/s',
        better: 'less',
        digits,
        bars: singles.map(({ library, language, values }) => ({
          ...contenderOf(library, language),
          ...spreadOf(values),
        })),
      },
      table: {
        heading: ['', 'median', 'least', 'most', 'times'],
        lines: singles.map(({ library, language, values }) => [
          contenderOf(library, language).name,
          text(median(values)),
          text(Math.min(...values)),
          text(Math.max(...values)),
          String(values.length),
        ]),
      },
    },
  ];
}

function contenderOf(library: string, language: string): { name: string; ours: boolean } {
  return { name: `${library} (${language})`, ours: library.startsWith('@locks/') };
}
