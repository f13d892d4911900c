import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SetClient, SetKeeper } from '../../src/lab/kept-set.ts';
import { parseLabArguments } from '../../src/lab/lab-arguments.ts';
import { type LabResult, summarise, tableOf } from '../../src/lab/lab-report.ts';
import { NEMESES } from '../../src/lab/nemeses.ts';
import { SeededRandom } from '../../src/lab/random.ts';
import {
  GUARANTEES_PAGE,
  keptReports,
  renderGuarantees,
  renderGuaranteeTables,
} from '../../src/lab/render-guarantees.ts';
import { WORKLOADS, workloadsOf } from '../../src/lab/workloads.ts';

const result: LabResult = {
  workload: 'mutex',
  nemesis: 'kill',
  faults: 3,
  operations: 100,
  violations: 0,
  longestIdleMs: 20,
  ghosts: 0,
  lostWithoutFence: null,
  lostWithFence: null,
};

describe('the kept set', () => {
  it('loses what a stale writer overwrites without a token, and refuses that with one', async () => {
    await using keeper = new SetKeeper();
    const port = await keeper.listen();
    const [slow, fast] = [new SetClient(port), new SetClient(port)];
    for (const [set, early, late] of [
      ['plain', undefined, undefined],
      ['fenced', '7', '8'],
    ] as const) {
      // The slow one reads, stands still until the fast one has written, and writes.
      const overtaken = async () => expect(await fast.add(set, 'b', async () => undefined, late)).toBe(true);
      expect(await slow.add(set, 'a', overtaken, early)).toBe(set === 'plain');
    }
    expect(keeper.lost('plain')).toBe(1);
    expect(keeper.lost('fenced')).toBe(0);
    expect(await slow.add('fenced', 'c', async () => undefined, '7')).toBe(false);
    expect(await slow.add('fenced', 'c', async () => undefined, '10')).toBe(true);
    slow.close();
    fast.close();
  });
});

describe('the arguments of the lab', () => {
  it('have defaults, and select what is asked for', () => {
    expect(parseLabArguments(['sqlite'])).toMatchObject({
      backends: ['sqlite'],
      seconds: 60,
      nemeses: NEMESES,
      workloads: WORKLOADS,
    });
    const args = [
      'sqlite',
      'mysql',
      '--minutes',
      '0.5',
      '--seed',
      '7',
      '--nemesis',
      'kill,pause',
      '--json',
      'f',
    ];
    expect(parseLabArguments([...args, '--workload', 'all'])).toEqual({
      backends: ['sqlite', 'mysql'],
      seconds: 30,
      seed: 7,
      nemeses: ['kill', 'pause'],
      workloads: ['all'],
      json: 'f',
      histories: undefined,
      edn: undefined,
    });
  });

  it.each([
    [[], /Which backends\? There are: sqlite, redis-ioredis/],
    [['oracle'], /no backend "oracle"/],
    [['sqlite', '--nemesis', 'flood'], /no nemesis "flood"\. There are: none, pause/],
    [['sqlite', '--workload', ''], /no workload ""/],
    [['sqlite', '--minutes', '-1'], /--minutes/],
    [['sqlite', '--minutes', 'long'], /--minutes/],
    [['sqlite', '--seed', '1.5'], /--seed/],
    [['sqlite', '--minute', '1'], /--minute/],
  ])('%j are refused', (args, says) => {
    expect(parseLabArguments(args)).toMatch(says);
  });
});

describe('the results', () => {
  const report = {
    ...{ backend: 'redis-node', seed: 7, minutes: 1, operations: 350, seconds: 5 },
    results: [
      result,
      {
        ...result,
        workload: 'lock-set',
        violations: 2,
        longestIdleMs: 30,
        ghosts: 1,
        lostWithoutFence: 4,
        lostWithFence: 0,
      },
      { ...result, nemesis: 'none', faults: 0, operations: 150 },
    ],
  } as const;

  it('are summed up by nemesis', () => {
    expect(summarise(report.results)).toEqual([
      {
        ...{ nemesis: 'kill', faults: 3, operations: 200, violations: 2, longestIdleMs: 30, ghosts: 1 },
        ...{ lostWithoutFence: 4, lostWithFence: 0 },
      },
      {
        ...{ nemesis: 'none', faults: 0, operations: 150, violations: 0, longestIdleMs: 20, ghosts: 0 },
        ...{ lostWithoutFence: null, lostWithFence: null },
      },
    ]);
    expect(tableOf(report).split('\n')).toHaveLength(3);
  });

  it('are rendered with the command that shows a violation', () => {
    const page = renderGuarantees([report]);
    const tables = renderGuaranteeTables([report]);
    expect(page).toContain('| redis-node | 350 | 2 | 0 | 0 | 1 | 30 |');
    expect(page).toMatch(/350 operations/);
    expect(tables).toContain('| redis-node | 150 ops, 0 violations');
    expect(tables).toContain('npm run lab -- redis-node --nemesis kill');
  });

  it('are counted apart where the store itself forgets', () => {
    const results = report.results.map((result) => ({ ...result, nemesis: 'restart-empty' as const }));
    const page = renderGuarantees([{ ...report, results }]);
    expect(page).toContain('| redis-node | 350 | 0 | restart-empty 2 |');
    expect(page).toContain('*Violations*: redis-node 2.');
  });

  it('that are kept are those of docs/guarantees.md (node contract-tests/src/lab/render-page.ts)', () => {
    expect(keptReports().length).toBeGreaterThan(0);
    expect(readFileSync(GUARANTEES_PAGE, 'utf8')).toBe(renderGuarantees(keptReports()));
  });
});

describe('the random numbers of the lab', () => {
  it('are those of their seed, spread over their range', () => {
    const numbers = (seed: number) => {
      const random = new SeededRandom(seed);
      return Array.from({ length: 1_000 }, () => random.next());
    };
    expect(numbers(5)).toEqual(numbers(5));
    expect(numbers(5)).not.toEqual(numbers(6));
    for (let tenth = 0; tenth < 10; tenth += 1) {
      const within = numbers(5).filter((one) => Math.floor(one * 10) === tenth);
      expect(within.length).toBeGreaterThan(50);
    }
    const random = new SeededRandom(1);
    expect(new Set(Array.from({ length: 100 }, () => random.one(['a', 'b'])))).toEqual(new Set(['a', 'b']));
    expect(() => random.one([])).toThrow('nothing to choose');
  });
});

describe('the workloads', () => {
  it('are those that the modes of a backend allow', () => {
    expect(workloadsOf(['exclusive', 'shared'])).toEqual(['mutex', 'lock-set', 'readers-writer', 'all']);
    expect(workloadsOf(['exclusive', 'shared', 'permit'])).toEqual(WORKLOADS);
  });
});
