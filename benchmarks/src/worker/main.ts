// A client process of the benchmarks. It is started by `conduct/worker.ts`, does what that asks for, and ends with it.
import { contenderNamed } from '../contenders/all.ts';
import type { Session } from '../contenders/contender.ts';
import { contend } from './contend.ts';
import { coreCost } from './core-cost.ts';
import { loop } from './loop.ts';
import { ManyLocks } from './many-locks.ts';
import type { WorkerMethods } from './methods.ts';
import { measurePings } from './ping.ts';

let session: Session | undefined;
let many: ManyLocks | undefined;

const methods: WorkerMethods = {
  async open(store, contender, url) {
    session = await (await contenderNamed(store, contender)).open(url);
  },
  loop: (task) => loop(opened(session), task),
  contend: (task) => contend(opened(session), task),
  ping: (count, restMs) => measurePings(opened(session), count, restMs),
  async openLocks(store, contender, url, ttlMs) {
    const { openLocks } = await contenderNamed(store, contender);
    if (openLocks === undefined) throw new Error(`${contender} is not ours.`);
    many = new ManyLocks((await openLocks(url, ttlMs)).locks);
  },
  holdAll: (names) => opened(many).holdAll(names),
  watch: (ms) => opened(many).watch(ms),
  queueUp: (names) => opened(many).queueUp(names),
  letGo: () => opened(many).letGo(),
  churn: (count, lanes) => opened(many).churn(count, lanes),
  coreCost,
};

interface Request {
  readonly id: number;
  readonly method: keyof WorkerMethods;
  readonly args: readonly unknown[];
}

function opened<T>(resource: T | undefined): T {
  if (resource === undefined) throw new Error('Nothing was opened in this process yet.');
  return resource;
}

async function answer({ id, method, args }: Request): Promise<void> {
  const run = methods[method] as (...args: readonly unknown[]) => Promise<unknown>;
  try {
    process.send?.({ id, result: await run(...args) });
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

process.on('message', (request: Request) => void answer(request));
// The conductor is gone, whatever ended it.
process.on('disconnect', () => process.exit());
