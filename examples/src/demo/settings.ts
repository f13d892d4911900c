import { parseArgs } from 'node:util';
import { type BackendName, backendNamed, backendNames } from './backends.ts';

export const usage = `usage: npm run demo -- [--workers N] [--sales N] [--backend NAME] [--json]
       npm run demo -- --once [--nights N] [--backend NAME] [--json]
       npm run demo -- --leader [--backend NAME] [--json]

             processes sell the same stock at once, without and with a lock
  --workers  how many sell at once (default 4)
  --sales    how many units are in stock (default 200)
  --once     three machines whose clocks are minutes apart have the same nightly job: it runs once a night
  --nights   how many nights pass, some two seconds each (default 5)
  --leader   three candidates for one leadership: the leader resigns, and the next two are killed
  --backend  where the lock lives: ${backendNames.slice(0, 5).join(', ')},
             ${backendNames.slice(5).join(', ')} (default sqlite);
             the server is that of REDIS_URL, POSTGRES_URL, MYSQL_URL, ZOOKEEPER_URL or ETCD_URL, or a private one
  --json     the figures as JSON`;

interface Common {
  readonly backend: BackendName;
  readonly json: boolean;
}

export type Settings =
  | (Common & { readonly act: 'stock'; readonly workers: number; readonly sales: number })
  | (Common & { readonly act: 'once'; readonly nights: number })
  | (Common & { readonly act: 'leader' });

const OPTIONS = {
  backend: { type: 'string', default: 'sqlite' },
  json: { type: 'boolean', default: false },
  once: { type: 'boolean', default: false },
  leader: { type: 'boolean', default: false },
  workers: { type: 'string' },
  sales: { type: 'string' },
  nights: { type: 'string' },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

/** The options of each act beside those of all. */
const OWN_OPTIONS = { stock: ['workers', 'sales'], once: ['nights'], leader: [] } as const;

/** Reads the command line; a text says what is wrong with it. */
export function readSettings(args: readonly string[]): Settings | string {
  let values: Values;
  try {
    ({ values } = parseArgs({ args: [...args], options: OPTIONS }));
  } catch (error) {
    return (error as Error).message;
  }
  if (values.once && values.leader) return 'take either --once or --leader';
  const act = values.once ? 'once' : values.leader ? 'leader' : 'stock';
  const others = Object.values(OWN_OPTIONS).flat();
  const foreign = others.find(
    (name) => values[name] !== undefined && !(OWN_OPTIONS[act] as readonly string[]).includes(name),
  );
  if (foreign !== undefined) {
    return act === 'stock' ? `--${foreign} goes with --once` : `--${foreign} does not go with --${act}`;
  }
  const backend = backendNamed(values.backend);
  if (backend === undefined) return `there is no backend ${JSON.stringify(values.backend)}`;
  return withFigures(act, { backend, json: values.json }, values);
}

function withFigures(act: Settings['act'], common: Common, values: Values): Settings | string {
  const { backend } = common;
  if (act === 'leader') {
    if (backend === 'memory')
      return '--leader kills processes, and the backend memory lives in one: take another';
    return { act, ...common };
  }
  if (act === 'once') {
    if (backend === 'postgres-advisory') return '--once needs fencing tokens, and postgres-advisory has none';
    const nights = Number(values.nights ?? 5);
    if (!isWithin(nights, 1, 30)) return '--nights takes a whole number from 1 to 30';
    return { act, ...common, nights };
  }
  const [workers, sales] = [Number(values.workers ?? 4), Number(values.sales ?? 200)];
  if (!isWithin(workers, 2, 64)) return '--workers takes a whole number from 2 to 64';
  if (!isWithin(sales, workers, 100_000)) {
    return '--sales takes a whole number, from the number of workers to 100000';
  }
  return { act, ...common, workers, sales };
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}
