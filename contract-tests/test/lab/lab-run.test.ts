import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SeededRandom } from '../../src/lab/random.ts';
import type { LabBackend } from '../../src/lab/deployments.ts';
import { labBackends } from '../../src/lab/lab-backends.ts';
import { NothingAcquired, runLab } from '../../src/lab/run-lab.ts';
import { WORKLOADS } from '../../src/lab/workloads.ts';

describe('the lab', { timeout: 120_000 }, () => {
  it.each(['none', 'pause', 'kill', 'block', 'block-with-thread'] as const)(
    'runs every workload on SQLite under the nemesis %s, and finds nothing',
    async (nemesis) => {
      const sentences: string[] = [];
      const onViolation = (sentence: string) => sentences.push(sentence);
      const random = new SeededRandom(11);
      const edn = await mkdtemp(join(tmpdir(), 'locks-lab-edn-'));
      onTestFinished(() => rm(edn, { recursive: true }));
      const results = await runLab({ backend: 'sqlite', nemesis, seconds: 2, random, edn, onViolation });
      expect(sentences).toEqual([]);
      expect(results?.map(({ workload }) => workload)).toEqual(WORKLOADS);
      for (const { workload, operations, violations, lostWithFence } of results ?? []) {
        expect(operations, workload).toBeGreaterThan(0);
        expect(violations, workload).toBe(0);
        expect(lostWithFence ?? 0, workload).toBe(0);
        const written = await readFile(join(edn, 'sqlite', nemesis, `${workload}.edn`), 'utf8');
        expect(written.match(/^\{:index \d+, :time \d+, :type :invoke/gm)?.length).toBeGreaterThanOrEqual(
          operations,
        );
      }
    },
  );

  it.each(['redlock', 'redlock-universal', 'redis-semaphore', 'verrou'])(
    'runs %s, with the workloads that it can do',
    async (backend) => {
      const random = new SeededRandom(5);
      const results = await runLab({ backend, nemesis: 'none', seconds: 2, random });
      expect(results?.map(({ workload }) => workload)).toEqual(['mutex', 'lock-set']);
      for (const { operations, violations, lostWithFence } of results ?? []) {
        expect(operations).toBeGreaterThan(0);
        expect(violations).toBe(0);
        expect(lostWithFence).toBeNull();
      }
    },
  );

  it.each(['redisson', 'redisson-fenced'])(
    'runs %s where Java and Maven are',
    { timeout: 300_000 },
    async (backend) => {
      const missing: string[] = [];
      const onMissing = (sentence: string) => missing.push(sentence);
      const random = new SeededRandom(5);
      const results = await runLab({ backend, nemesis: 'blackhole', seconds: 3, random, onMissing });
      if (results === undefined)
        return expect(missing).toEqual([expect.stringMatching(/^Redisson needs|^mvn /)]);
      expect(results.map(({ workload }) => workload)).toEqual(['mutex', 'lock-set']);
      // A process that has to wait for a processor loses its lock, and learns of that when it releases.
      for (const { operations } of results) expect(operations).toBeGreaterThan(0);
      expect(results[1]?.lostWithFence).toBe(backend === 'redisson' ? null : 0);
    },
  );

  it.each(['blackhole', 'cut-one-way'] as const)(
    'loses what workers send and receive under %s, and finds nothing',
    async (nemesis) => {
      const random = new SeededRandom(7);
      const results = await runLab({ backend: 'redis-ioredis', nemesis, seconds: 4, random });
      for (const { operations, violations, ghosts, longestIdleMs } of results ?? []) {
        expect(operations).toBeGreaterThan(0);
        expect([violations, ghosts]).toEqual([0, 0]);
        expect(longestIdleMs).toBeLessThan(20_000);
      }
      expect(results?.map(({ workload }) => workload)).toEqual(WORKLOADS);
    },
  );

  it('shows where a store lets two hold: its clock is set forward', async () => {
    const random = new SeededRandom(3);
    const missing: string[] = [];
    const onMissing = (sentence: string) => missing.push(sentence);
    const run = {
      backend: 'redis-ioredis',
      nemesis: 'clock-forward',
      seconds: 8,
      random,
      onMissing,
    } as const;
    const results = await runLab(run);
    if (results === undefined)
      return expect(missing).toEqual(['clocks of servers are set with Linux and gcc']);
    expect(results.some(({ violations }) => violations > 0)).toBe(true);
    for (const { lostWithFence } of results) expect(lostWithFence ?? 0).toBe(0);
  });

  it('refuses a run that acquired nothing: every call fails, and none of them violates anything', async () => {
    const backends = labBackends as Record<string, LabBackend>;
    backends['no-folder'] = {
      ...(backends['sqlite'] as LabBackend),
      deploy: async () => ({
        connect: async () => ({ address: { path: '/nowhere/locks.db' }, proxies: [] }),
        [Symbol.asyncDispose]: async () => {},
      }),
    };
    const run = runLab({ backend: 'no-folder', nemesis: 'none', seconds: 1, random: new SeededRandom(1) });
    await expect(run).rejects.toBeInstanceOf(NothingAcquired);
  });

  it('says where a nemesis does not apply', async () => {
    const random = new SeededRandom(1);
    expect(await runLab({ backend: 'sqlite', nemesis: 'failover', seconds: 1, random })).toBeUndefined();
  });
});
