/**
 * The classic job: several workers sell the same stock at once, each reading it, thinking, and writing it back.
 * Runs first without a lock, then with one, and shows what it costs not to have it.
 * `npm run demo` runs it on the workspace's Node 24, which `await using` needs.
 */
import { parseArgs } from 'node:util';
import { type BackendName, backendNamed, backendNames, openStore } from './backends.ts';
import { printReport } from './report.ts';
import { type Run, runShift } from './shift.ts';

const usage = `usage: npm run demo -- [--backend ${backendNames.join('|')}] [--workers N] [--sales N] [--json]

  --backend  where the lock lives (default sqlite); the server is that of REDIS_URL, POSTGRES_URL, MYSQL_URL,
             ZOOKEEPER_URL or ETCD_URL, or a private one
  --workers  how many sell at once (default 4)
  --sales    how many units are in stock (default 200)
  --json     the figures as JSON`;

interface Settings {
  readonly backend: BackendName;
  readonly workers: number;
  readonly sales: number;
  readonly json: boolean;
}

function settings(): Settings | string {
  try {
    const { values } = parseArgs({
      options: {
        backend: { type: 'string', default: 'sqlite' },
        workers: { type: 'string', default: '4' },
        sales: { type: 'string', default: '200' },
        json: { type: 'boolean', default: false },
      },
    });
    const { json } = values;
    const backend = backendNamed(values.backend);
    const [workers, sales] = [Number(values.workers), Number(values.sales)];
    if (backend === undefined) return `there is no backend ${JSON.stringify(values.backend)}`;
    if (!Number.isInteger(workers) || workers < 2 || workers > 64)
      return '--workers takes a whole number from 2 to 64';
    if (!Number.isInteger(sales) || sales < workers || sales > 100_000) {
      return '--sales takes a whole number, from the number of workers to 100000';
    }
    return { backend, workers, sales, json };
  } catch (error) {
    return (error as Error).message;
  }
}

/** The unlocked run counts only if every worker sold something and no unit of stock was left. */
function honest(run: Run, workers: number): boolean {
  return run.soldBy.length === workers && run.soldBy.every((sold) => sold > 0) && run.left === 0;
}

async function main(): Promise<number> {
  const chosen = settings();
  if (typeof chosen === 'string') {
    console.error(`${chosen}\n\n${usage}`);
    return 2;
  }
  const { backend, workers, sales } = chosen;
  await using store = await openStore(backend);
  const unlocked = await runShift({ store, workers, sales, locked: false });
  const locked = await runShift({ store, workers, sales, locked: true });
  const ok = locked.oversold === 0 && locked.left === 0 && honest(unlocked, workers);
  printReport({ backend, place: store.place, workers, sales, unlocked, locked, ok }, chosen.json);
  return ok ? 0 : 1;
}

process.exitCode = await main();
