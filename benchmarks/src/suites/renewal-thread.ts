import { startRedis } from '@locks/test-servers';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { describeMachine } from '../measure/machine.ts';
import { median } from '../measure/quantiles.ts';
import { untilQuiet } from '../measure/quiet.ts';
import type { RenewalFigures } from '../worker/renewal-process.ts';

const PROCESS = fileURLToPath(new URL('../worker/renewal-process.ts', import.meta.url));
const FIGURES = [
  'startMs',
  'rssMegabytes',
  'pairsPerSecond',
  'renewalMicros',
  'validForNanos',
] as const satisfies readonly (keyof RenewalFigures)[];

/** `bench renewal-thread`: what a renewal thread costs, on Redis, a process for each round. Gives the exit code. */
export async function renewalThreadSuite(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { rounds: { type: 'string', default: '9' }, json: { type: 'string' } },
  });
  await untilQuiet((text) => console.log(text));
  const machine = describeMachine();
  console.log(`${machine.cpu}, ${machine.cores} cores, Node ${process.version}, load ${machine.load}`);
  const server = await startRedis();
  const rounds: Record<'loop' | 'thread', RenewalFigures[]> = { loop: [], thread: [] };
  try {
    // The ways take turns: what else runs on the machine meets both.
    for (let round = 0; round < Number(values.rounds); round += 1) {
      for (const way of ['loop', 'thread'] as const) rounds[way].push(await measure(way, server.url));
    }
  } finally {
    await server.stop();
  }
  console.log('medians of rounds, each in a process of its own:');
  console.log(`${''.padEnd(16)} without   with a renewal thread`);
  for (const figure of FIGURES) {
    const [without, withThread] = [rounds.loop, rounds.thread].map((all) =>
      median(all.map((one) => one[figure])),
    );
    console.log(`${figure.padEnd(16)} ${without?.toFixed(1).padEnd(9)} ${withThread?.toFixed(1)}`);
  }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ machine, rounds }));
  return 0;
}

async function measure(way: 'loop' | 'thread', url: string): Promise<RenewalFigures> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROCESS, way], {
    env: { ...process.env, REDIS_URL: url },
  });
  return JSON.parse(stdout) as RenewalFigures;
}
