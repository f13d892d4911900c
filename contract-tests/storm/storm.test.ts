import { it, vi } from 'vitest';
import { labBackends } from '../src/lab/lab-backends.ts';
import { SeededRandom } from '../src/lab/random.ts';
import { runLab } from '../src/lab/run-lab.ts';
import { workloadsOf } from '../src/lab/workloads.ts';

/** Each store by one server: `npm run lab` also breaks clusters. */
const STORES = Object.entries(labBackends).filter(
  ([name]) => !/-(cluster|ensemble|sentinel|pgbouncer)$/.test(name),
);
const missing = process.env['LOCKS_MISSING_SERVERS']?.split(',').filter(Boolean) ?? [];
const present = STORES.filter(([name]) => !missing.some((server) => name.includes(server)));
const seed = Number(process.env['LOCKS_STORM_SEED'] ?? Date.now() % 1_000_000);

// More would starve each other on a small machine.
vi.setConfig({ maxConcurrency: 3 });

it.concurrent.for(present)(
  `%s, seed ${seed}: processes are killed, stand still and lose their connections, and no lock has two holders`,
  { timeout: 180_000 },
  async ([backend, { modes }], { expect }) => {
    const sentences: string[] = [];
    const results = await runLab({
      ...{ backend, nemesis: 'storm', seconds: 4, random: new SeededRandom(seed) },
      onViolation: (sentence) => sentences.push(sentence),
    });
    expect(sentences).toEqual([]);
    expect(results?.map(({ workload }) => workload)).toEqual(workloadsOf(modes));
    for (const { workload, operations, ghosts, lostWithFence } of results ?? []) {
      expect(operations, workload).toBeGreaterThan(0);
      expect({ ghosts, lost: lostWithFence ?? 0 }, workload).toEqual({ ghosts: 0, lost: 0 });
    }
  },
);
