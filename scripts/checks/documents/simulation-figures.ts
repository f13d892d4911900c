import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';

const BLOCK =
  /(?<=<!-- figures: written by npm run update from docs\/simulation\.json and the planted errors -->\n)[^]*?(?=<!-- end -->)/;

/** What docs/simulation.json keeps of the runs of one backend; `npm run -s simulate -- --add FILE` adds to it. */
interface Figures {
  readonly schedules: number;
  readonly processorSeconds: number;
  /** The kinds of faults that have happened. */
  readonly faults: readonly string[];
}

interface SimulationFigures {
  /** Schedules of before, which were not counted by backend. */
  readonly earlier: number;
  readonly backends: Readonly<Record<string, Figures>>;
}

interface PlantedError {
  readonly backend: string;
  readonly variant?: string;
  readonly what: string;
}

/** The page with its figures by store: of the runs that were added up, and of the errors that the tests plant. */
export async function withSimulationFigures(page: string): Promise<string> {
  if (!BLOCK.test(page)) throw new Error('the page of the simulation has no block for its figures');
  const { earlier, backends } = JSON.parse(
    readFileSync(join(root, 'docs/simulation.json'), 'utf8'),
  ) as SimulationFigures;
  const { BACKEND_KINDS } = (await import(join(root, 'simulation/src/workload/plan.ts'))) as {
    readonly BACKEND_KINDS: readonly string[];
  };
  const kinds = [...BACKEND_KINDS, 'file'];
  const planted = await plantedErrors();
  const unknown = planted.find(({ backend }) => !kinds.includes(backend));
  if (unknown !== undefined)
    throw new Error(`"${unknown.what}" is planted in ${unknown.backend}, which no run has`);
  const all = Object.values(backends).reduce((sum, { schedules }) => sum + schedules, earlier);
  const rows = [...kinds, 'thread'].map((kind) => {
    const { schedules = 0, processorSeconds = 0, faults = [] } = backends[kind] ?? {};
    const errors = planted.filter(
      ({ backend, variant }) => kind === (variant === 'thread' ? variant : backend),
    ).length;
    const rate = processorSeconds > 0 ? String(Math.round(schedules / processorSeconds)) : '–';
    const shown = kind === 'thread' ? '`--variant thread`, on six stores' : `\`${kind}\``;
    return `| ${shown} | ${inThousands(schedules)} | ${rate} | ${faults.length} | ${errors} |`;
  });
  return page.replace(BLOCK, () =>
    [
      `- **${inThousands(all)} schedules** have run since November 22, most of them with fewer checks than today: the table has those that were`,
      '  counted by store. The [track record](track-record.md) has the bugs that they found.',
      `- **All ${planted.length} [planted errors](#planted-errors)** are found.`,
      '',
      '| `--backend` | schedules | a second, on one core | kinds of faults | planted errors, all found |',
      '|---|---|---|---|---|',
      ...rows,
      '',
    ].join('\n'),
  );
}

/** The errors of every file that plants some: each exports lists of them, and one list may hold another. */
async function plantedErrors(): Promise<PlantedError[]> {
  const files = globSync('simulation/test/planted-errors{,-*}.ts', { cwd: root });
  const modules = (await Promise.all(files.map((file) => import(join(root, file))))) as Record<
    string,
    unknown
  >[];
  const lists = modules
    .flatMap((exported) => Object.values(exported))
    .filter((value) => Array.isArray(value));
  const found = lists.flat() as PlantedError[];
  return [...new Map(found.map((error) => [`${error.backend} ${error.what}`, error])).values()];
}

/** 2154500 as 2 154 500. */
function inThousands(count: number): string {
  return String(count).replaceAll(/(?<=\d)(?=(\d{3})+$)/g, ' ');
}
