import { Redis } from 'ioredis';
import { runSuite, type Selection } from '../command.ts';
import type { Run } from '../conduct/run.ts';
import { buildFolder, type Language, languages, type Library } from '../languages/drivers.ts';
import {
  type Figures,
  type Place,
  type Player,
  playIdle,
  playKill,
  playRenewal,
  playRound,
  type RoundTimes,
  type Scenario,
  scenarios,
} from '../languages/scenarios.ts';
import type { Progress } from '../measure/progress.ts';
import { median } from '../measure/quantiles.ts';
import { barChart } from '../report/chart.ts';
import { whole } from '../report/figures.ts';
import type { ReportHead } from '../report/head.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import { openRedisTestbed } from '../stores/redis.ts';
import type { SettingsOptions } from './settings.ts';

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

interface LanguagesReport extends ReportHead, LanguagesFigures {
  readonly suite: 'languages';
  readonly settings: Settings;
}

interface LanguagesFigures {
  readonly results: readonly Result[];
  readonly kill: readonly Single[];
  readonly idle: readonly Single[];
  readonly renewal: readonly Single[];
}

interface Settings extends RoundTimes {
  readonly quick: boolean;
  readonly rounds: number;
  readonly kills: number;
  readonly waiters: number;
  readonly leases: number;
}

const full: Settings = {
  quick: false,
  rounds: 3,
  leadInMs: 1_500,
  forMs: 1_000,
  kills: 3,
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
const IDLE_MS = 3_000;

/** What is measured of this repository. */
const OURS = ['@locks/core', '@locks/redis-ioredis', '@locks/redis-node'];

const rows = [...scenarios.map(({ id }) => id), 'kill', 'idle', 'renewal'];

/** `bench languages`: lock libraries of several languages on one Redis. Gives the exit code. */
export async function languagesSuite(args: readonly string[]): Promise<number> {
  return await runSuite<LanguagesReport, Language>(
    {
      name: 'languages',
      rows,
      chosenBy: 'language',
      contenders: async () => languages,
      measure,
      sectionsOf,
      judge: () => [],
    },
    args,
  );
}

async function measure(
  { quick: isQuick, rounds }: SettingsOptions,
  { rows: wanted, contenders: chosen }: Selection<Language>,
  run: Run,
): Promise<LanguagesReport> {
  const base = isQuick ? quick : full;
  const settings = { ...base, rounds: rounds ?? base.rounds };
  const absent: string[] = [];
  const all: Player[] = [];
  for (const language of chosen) {
    run.progress.report(`building ${language.name}`);
    const built = language.build(buildFolder());
    if (typeof built === 'string') absent.push(`${language.name}: ${built}`);
    else all.push(...language.libraries.map((library) => ({ language, library, command: built })));
  }
  const figures = await run.on(openRedisTestbed, [{ packages: OURS }], async (testbed) => {
    const control = new Redis(testbed.url);
    const { host: address } = new URL(testbed.url);
    const place: Place = { control, address, cores: testbed.pinning?.clients };
    try {
      return await measureRows(place, all, settings, wanted, run.progress);
    } finally {
      control.disconnect();
    }
  });
  return run.report('languages', { settings, absent, ...figures });
}

async function measureRows(
  place: Place,
  all: readonly Player[],
  settings: Settings,
  wanted: ReadonlySet<string>,
  progress: Progress,
): Promise<LanguagesFigures> {
  const results: Result[] = [];
  for (const scenario of scenarios.filter(({ id }) => wanted.has(id))) {
    const rounds = new Map<Player, Figures[]>();
    const players = all.filter(({ library }) => takesPart(library, scenario));
    for (let round = 0; round < settings.rounds; round += 1) {
      for (const player of round % 2 === 0 ? players : players.toReversed()) {
        const what = `${scenario.id}: ${player.library.name}, round ${round + 1}`;
        const figures = await progress.part(what, () => playRound(place, player, scenario, settings));
        if (figures !== undefined) rounds.set(player, [...(rounds.get(player) ?? []), figures]);
      }
    }
    for (const player of players) {
      const ofPlayer = rounds.get(player);
      if (ofPlayer === undefined) continue;
      const { name: library, floor } = player.library;
      results.push({
        ...{ scenario: scenario.id, language: player.language.name, library, floor },
        rounds: ofPlayer,
      });
    }
  }
  const locksOnly = all.filter(({ library }) => !library.name.startsWith('raw '));
  const single = async (
    id: string,
    players: readonly Player[],
    play: (player: Player) => Promise<number>,
    times = 1,
  ): Promise<Single[]> => {
    if (!wanted.has(id)) return [];
    const singles: Single[] = [];
    for (const player of players) {
      const library = player.library.name;
      const values = await progress.part(`${id}: ${library}`, async () => {
        const all: number[] = [];
        for (let time = 0; time < times; time += 1) all.push(await play(player));
        return all;
      });
      if (values !== undefined) singles.push({ language: player.language.name, library, values });
    }
    return singles;
  };
  const renewing = locksOnly.filter(({ library }) => library.renews);
  return {
    results,
    kill: await single('kill', locksOnly, (player) => playKill(place, player, KILLED_TTL_MS), settings.kills),
    idle: await single('idle', locksOnly, (player) => playIdle(place, player, settings.waiters, IDLE_MS)),
    renewal: await single('renewal', renewing, (player) => playRenewal(place, player, settings.leases)),
  };
}

/** The bare clients poll, which is no way to wait: they are in the rows without waiting only. */
function takesPart(library: Library, { id, kind }: Scenario): boolean {
  const isFloor = library.name === library.floor;
  return library.kinds.includes(kind) && (!isFloor || id === 'sequential' || id === 'keys');
}

function sectionsOf({ results, settings, kill, idle, renewal }: LanguagesReport): Section[] {
  const { waiters, leases } = settings;
  return [
    ...scenarios.flatMap((scenario) => {
      const ofScenario = results.filter((result) => result.scenario === scenario.id);
      return ofScenario.length === 0 ? [] : [scenarioSection(scenario, ofScenario)];
    }),
    ...singleSection('kill', 'From the end of a killed holder’s lock to the next entry, ms', kill, 1),
    ...singleSection('idle', `${waiters} waiters on one held lock: commands/s in the server`, idle, 0),
    ...singleSection('renewal', `${leases} locks of 6 s kept alive: commands/s in the server`, renewal, 0),
  ];
}

function scenarioSection({ id, title, kind }: Scenario, results: readonly Result[]): Section {
  const typical = ({ rounds }: Result, figure: (figures: Figures) => number): number =>
    median(rounds.map(figure));
  const timesFloor = (result: Result): string => {
    const floor = results.find(({ library }) => library === result.floor);
    if (floor === undefined || floor === result) return '';
    const ratios = result.rounds.map(
      ({ perSecond }, round) => perSecond / (floor.rounds[round]?.perSecond ?? Number.NaN),
    );
    return median(ratios).toFixed(2);
  };
  const fairness = (result: Result): string => {
    const fair = typical(result, (figures) => figures.fair);
    return Number.isFinite(fair) ? fair.toFixed(2) : '∞';
  };
  const counted = (figure: (figures: Figures) => number) => (result: Result) =>
    whole(typical(result, figure));
  const sumOfOverlaps = ({ rounds }: Result): number =>
    rounds.reduce((sum, { overlaps }) => sum + overlaps, 0);
  return {
    title,
    chart: barChart(
      { id, title, unit: 'entries/s', better: 'more', digits: 0 },
      results.map((result) => ({
        ...contenderOf(result),
        values: result.rounds.map(({ perSecond }) => perSecond),
      })),
    ),
    table: tableOf(results, [
      ['', (result) => contenderOf(result).name],
      ['entries/s', counted(({ perSecond }) => perSecond)],
      ['× own floor', timesFloor],
      kind === 'readers' && ['of them writes/s', counted(({ writesPerSecond = 0 }) => writesPerSecond)],
      ['wait p50 ms', (result) => typical(result, ({ waitP50Ms }) => waitP50Ms).toFixed(2)],
      ['p99 ms', (result) => typical(result, ({ waitP99Ms }) => waitP99Ms).toFixed(1)],
      ['longest ms', (result) => typical(result, ({ longestWaitMs }) => longestWaitMs).toFixed(0)],
      ['fair', fairness],
      ['starved', counted(({ starved }) => starved)],
      ['server µs', counted(({ serverMicros }) => serverMicros)],
      ['overlaps', (result) => String(sumOfOverlaps(result))],
    ]),
    note:
      kind === 'readers'
        ? 'fair: most / least entries of a reader. starved: who never entered, the writer included.'
        : 'fair: most / least entries of a waiter. starved: waiters that never entered.',
  };
}

function singleSection(id: string, title: string, singles: readonly Single[], digits: number): Section[] {
  if (singles.length === 0) return [];
  const text = (value: number): string => (digits === 0 ? whole(value) : value.toFixed(digits));
  const unit = id === 'kill' ? 'ms' : 'commands/s';
  const bars = singles.map((single) => ({ ...contenderOf(single), values: single.values }));
  return [
    {
      title,
      chart: barChart({ id, title, unit, better: 'less', digits }, bars),
      table: tableOf(singles, [
        ['', (single) => contenderOf(single).name],
        ['median', ({ values }) => text(median(values))],
        ['least', ({ values }) => text(Math.min(...values))],
        ['most', ({ values }) => text(Math.max(...values))],
        ['times', ({ values }) => String(values.length)],
      ]),
    },
  ];
}

function contenderOf({ library, language }: Omit<Single, 'values'>): { name: string; ours: boolean } {
  return { name: `${library} (${language})`, ours: library.startsWith('@locks/') };
}
