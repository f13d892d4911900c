import type { Contention } from '../compare/burst.ts';
import type { Comparison } from '../compare/comparison.ts';
import { compareContended } from '../compare/contended.ts';
import { coreSection, type CoreResult, measureCore } from '../compare/core-cost.ts';
import { type IdleResult, idleSection, type IdleTask, measureIdle } from '../compare/idle.ts';
import { killedSection, type KilledResult, measureKilled } from '../compare/killed.ts';
import { measureMemory, type MemoryResult, memorySection } from '../compare/memory.ts';
import { measureRenewal, type RenewalResult, renewalSection } from '../compare/renewal.ts';
import { comparisonSection } from '../compare/tables.ts';
import { measureTrips, type TripsResult, tripsSection, type TripsTask } from '../compare/trips.ts';
import { compareUncontended, type LoopRow } from '../compare/uncontended.ts';
import { measureWaiting, type WaitingResult, waitingSection, type WaitingTask } from '../compare/waiting.ts';
import type { Testbed } from '../conduct/testbed.ts';
import type { Contender } from '../contenders/contender.ts';
import type { Progress } from '../measure/progress.ts';
import type { Section } from '../report/report.ts';
import type { Settings } from './settings.ts';

/** What rows measure on one server; what was not asked for, or failed, is absent. */
export interface Figures {
  readonly comparisons: readonly Comparison[];
  readonly trips?: readonly TripsResult[];
  readonly core?: CoreResult;
  readonly renewal?: readonly RenewalResult[];
  readonly waiting?: readonly WaitingResult[];
  readonly idle?: readonly IdleResult[];
  readonly killed?: readonly KilledResult[];
  readonly memory?: readonly MemoryResult[];
}

/** What a row is measured with. */
interface Setup {
  readonly testbed: Testbed;
  readonly settings: Settings;
  readonly contenders: readonly Contender[];
  readonly progress: Progress;
}

export interface Row {
  readonly id: string;
  measure(setup: Setup): Promise<Partial<Figures>>;
}

/** Measures rows one after the other. */
export async function measureRows(rows: readonly Row[], setup: Setup): Promise<Figures> {
  const all: Partial<Figures>[] = [];
  for (const row of rows) all.push(await row.measure(setup));
  return Object.assign({}, ...all, { comparisons: all.flatMap(({ comparisons = [] }) => comparisons) });
}

export function loopRow(row: LoopRow): Row {
  return comparedRow(row.id, (who, { testbed, settings }) => compareUncontended(testbed, who, settings, row));
}

export function contendedRow(row: Contention): Row {
  return comparedRow(row.id, (who, { testbed, settings }) => compareContended(testbed, who, settings, row));
}

function comparedRow(
  id: string,
  compare: (who: readonly Contender[], setup: Setup) => Promise<Comparison>,
): Row {
  return {
    id,
    async measure(setup) {
      const who = setup.contenders.filter(({ rows }) => rows?.includes(id) ?? true);
      if (who.length === 0) return {};
      const comparison = await setup.progress.part(id, () => compare(who, setup));
      // A row that failed may have left a waiter behind; and of contenders of some rows only none is there in the others.
      if (comparison === undefined || who.some(({ rows }) => rows !== undefined))
        await endWorkers(setup.testbed, who);
      return { comparisons: comparison === undefined ? [] : [comparison] };
    },
  };
}

async function endWorkers(testbed: Testbed, who: readonly Contender[]): Promise<void> {
  for (const contender of who) await testbed.endWorkers(contender);
}

const isOurs = ({ kind }: Contender): boolean => kind === 'ours';

/** A row of figures that each contender has for itself, one or several. */
function singleRow<Key extends 'trips' | 'renewal' | 'waiting' | 'idle' | 'killed' | 'memory', Task>(
  id: string,
  key: Key,
  tasksOf: (contender: Contender, settings: Settings) => readonly Task[],
  measure: (testbed: Testbed, contender: Contender, task: Task) => Promise<NonNullable<Figures[Key]>[number]>,
): Row {
  return {
    id,
    async measure({ testbed, settings, contenders, progress }) {
      // Only the measured processes of ours send requests meanwhile.
      if (id === 'waiting' || id === 'kill') await endWorkers(testbed, contenders.filter(isOurs));
      const results: unknown[] = [];
      for (const contender of contenders) {
        const tasks = tasksOf(contender, settings);
        for (const [index, task] of tasks.entries()) {
          const what = `${id} ${contender.name}, ${index + 1} of ${tasks.length}`;
          const result = await progress.part(what, () => measure(testbed, contender, task));
          if (result !== undefined) results.push(result);
        }
      }
      return results.length === 0 ? {} : { [key]: results };
    },
  };
}

/** The round trips of those for whom there are tasks. */
export function tripsRow(tasksOf: (contender: Contender, forMs: number) => readonly TripsTask[]): Row {
  return singleRow('trips', 'trips', (contender, { tripsMs }) => tasksOf(contender, tripsMs), measureTrips);
}

export function waitingRow(waits: readonly Omit<WaitingTask, 'waitingMs'>[]): Row {
  return singleRow(
    'waiting',
    'waiting',
    (contender, { waitingMs }) => (isOurs(contender) ? waits.map((wait) => ({ ...wait, waitingMs })) : []),
    measureWaiting,
  );
}

export function idleRow(tasks: readonly Omit<IdleTask, 'waitingMs'>[]): Row {
  return singleRow(
    'idle',
    'idle',
    (_contender, { waitingMs }) => tasks.map((task) => ({ ...task, waitingMs })),
    measureIdle,
  );
}

const once = (contender: Contender, settings: Settings): Settings[] => (isOurs(contender) ? [settings] : []);

export const killRow = singleRow('kill', 'killed', once, measureKilled);
export const renewalRow = singleRow('renewal', 'renewal', once, measureRenewal);
export const memoryRow = singleRow('memory', 'memory', once, measureMemory);

export const coreRow: Row = {
  id: 'core',
  async measure({ testbed, settings, progress }) {
    const core = await progress.part('core', () => measureCore(testbed, settings));
    return core === undefined ? {} : { core };
  },
};

/** The sections of all rows, in the order of the pages. */
export function sectionsOf(
  { comparisons, trips, core, renewal, waiting, idle, killed, memory }: Figures,
  counting?: string,
  sectionOf: (comparison: Comparison) => Section = comparisonSection,
): Section[] {
  return [
    ...comparisons.map(sectionOf),
    ...(counting === undefined || comparisons.length === 0 ? [] : [operationsSection(comparisons, counting)]),
    ...(trips === undefined ? [] : [tripsSection(trips)]),
    ...(core === undefined ? [] : [coreSection(core)]),
    ...(renewal === undefined ? [] : [renewalSection(renewal)]),
    ...(waiting === undefined ? [] : [waitingSection(waiting)]),
    ...(idle === undefined ? [] : [idleSection(idle)]),
    ...(killed === undefined ? [] : [killedSection(killed)]),
    ...(memory === undefined ? [] : [memorySection(memory)]),
  ];
}

/** Operations below this share of an acquisition belong to background work, and would only fill the table. */
const WORTH_A_LINE = 0.005;

function operationsSection(comparisons: readonly Comparison[], counting: string): Section {
  const lines = comparisons.flatMap(({ id, contenders }) =>
    contenders.flatMap(({ name, counted: { byCommand, operations } }) =>
      Object.entries(byCommand)
        .filter(([, count]) => count / operations >= WORTH_A_LINE)
        .sort(([, one], [, other]) => other - one)
        // SQL in a table of Markdown.
        .map(([kind, count]) => [
          id,
          name,
          `\`${kind.replaceAll('|', '\\|')}\``,
          (count / operations).toFixed(2),
        ]),
    ),
  );
  return {
    title: 'What the server was asked, per acquisition',
    table: { heading: ['row', '', 'operation', 'times'], lines },
    note: `Counted by ${counting}.`,
  };
}
