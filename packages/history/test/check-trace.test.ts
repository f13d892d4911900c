import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  checkTrace,
  parseTrace,
  type TraceCheckOptions,
  type TraceRule,
  type TraceVerdict,
} from '../src/index.ts';
import { TRACE_RULES } from '../src/trace-rules.ts';

type Line = Readonly<Record<string, unknown>>;

const CAPABILITIES = { tenure: 'lease', order: 'fifo', fencing: 'durable' };
const TTL_MS = 1_000;
const EXCLUSIVE = { kind: 'exclusive' };
const SHARED = { kind: 'shared' };

/** The lines of one process. In these traces the clock of a manager is that of its machine. */
class Traced {
  readonly lines: Line[];
  #calls = 0;

  constructor(process = 'a', { capabilities = {}, machine = 'm', wall = 1_000_000 } = {}) {
    this.lines = [
      { step: 'begin', version: 1, process, machine, time: 0, wall },
      {
        step: 'client',
        time: 0,
        client: 1,
        backend: 'redis',
        store: 'redis',
        capabilities: { ...CAPABILITIES, ...capabilities },
      },
    ];
  }

  tell(time: number, step: string, more: Line): this {
    this.lines.push({ step, time, client: 1, at: time, ...more });
    return this;
  }

  /** A call, and its answer 1 ms later, unless there is none. */
  call(time: number, method: string, acquisition: Line, outcome: Line | undefined, more: Line = {}): this {
    const call = (this.#calls += 1);
    this.tell(time, 'call', { call, method, acquisitions: [acquisition], ...more });
    return outcome === undefined ? this : this.tell(time + 1, 'answer', { call, outcomes: [outcome] });
  }

  granted(time: number, id: string, token: number | undefined, more: Line = {}): this {
    const acquisition = { name: 'stock', id, mode: EXCLUSIVE, ttlMs: TTL_MS, ...more };
    const outcome = {
      status: 'granted',
      countedFrom: time,
      ...(token !== undefined && { token: `${token}` }),
    };
    return this.call(time, 'attempt', acquisition, outcome, { enqueue: true });
  }

  believes(time: number, id: string, until: number, more: Line = {}): this {
    const { renews = false, ...rest } = more;
    const acquisition = { name: 'stock', id, mode: EXCLUSIVE, ttlMs: TTL_MS, ...rest };
    return this.tell(time, 'believes', { acquisition, until, endsAt: until, renews });
  }

  acquired(time: number, id: string, token: number | undefined, more: Line = {}): this {
    return this.granted(time, id, token, more).believes(time + 1, id, endOf(time), {
      ...(token !== undefined && { token: `${token}` }),
      ...more,
    });
  }

  ends(time: number, id: string, why: string, until = time + 100): this {
    return this.tell(time, 'ends', { acquisition: { name: 'stock', id }, why, until, endsAt: until });
  }

  released(time: number, id: string): this {
    return this.ends(time, id, 'released').call(
      time,
      'release',
      { name: 'stock', id },
      { status: 'released' },
    );
  }

  abandoned(time: number, id: string): this {
    return this.call(time, 'abandon', { name: 'stock', id }, { status: 'none' });
  }

  /** Other lines, which show that the process runs. */
  runs(from: number, to: number): this {
    for (let time = from; time <= to; time += 30)
      this.lines.push({ step: 'clock', time, wall: 1_000_000 + time });
    return this;
  }
}

function endOf(countedFrom: number, ttlMs = TTL_MS): number {
  return countedFrom + ttlMs - (ttlMs * 0.01 + 2);
}

function verdictOn(
  processes: readonly Traced[],
  options?: TraceCheckOptions,
  remarks: readonly Line[] = [],
): TraceVerdict {
  const texts = processes.map(({ lines }, index) =>
    [...(index === 0 ? remarks : []), ...lines].map((line) => JSON.stringify(line)).join('\n'),
  );
  const trace = parseTrace(...texts);
  expect(trace.malformed).toEqual([]);
  return checkTrace(trace, options);
}

function brokenBy(...processes: readonly Traced[]): string[] {
  return [...new Set(verdictOn(processes).violations.map(({ rule }) => rule))];
}

const clean: Readonly<Record<string, () => readonly Traced[]>> = {
  'one holder after another': () => [
    new Traced('a')
      .acquired(0, 'x', 1)
      .released(50, 'x')
      .acquired(200, 'z', 3)
      .released(250, 'z')
      .runs(300, 5_000),
    new Traced('b').acquired(60, 'y', 2).released(150, 'y').runs(300, 5_000),
  ],
  'a renewal, which counts from its sending': () => [
    new Traced()
      .acquired(0, 'x', 1, { renews: true })
      .call(300, 'renew', { name: 'stock', id: 'x', ttlMs: TTL_MS, token: '1' }, { status: 'held' })
      .believes(301, 'x', endOf(300), { renews: true })
      .released(400, 'x')
      .runs(500, 5_000),
  ],
  'readers beside each other, and a writer after them': () => [
    new Traced('a').acquired(0, 'x', 1, { mode: SHARED }).released(100, 'x'),
    new Traced('b')
      .acquired(10, 'y', 2, { mode: SHARED })
      .released(110, 'y')
      .acquired(120, 'z', 3)
      .released(130, 'z'),
  ],
  'permits within their limit': () => [
    new Traced('a').acquired(0, 'x', 1, { mode: { kind: 'permit', weight: 2, limit: 3 } }).released(100, 'x'),
    new Traced('b')
      .acquired(10, 'y', 2, { mode: { kind: 'permit', weight: 1, limit: 3 } })
      .released(100, 'y'),
  ],
  'a steal, whose victim learns of it later': () => [
    new Traced('a').acquired(0, 'x', 1).ends(300, 'x', 'taken-over', endOf(0)).runs(400, 5_000),
    new Traced('b').acquired(100, 'y', 2, { steal: true }).released(200, 'y').runs(400, 5_000),
  ],
  'a forced release': () => [
    new Traced('a').acquired(0, 'x', 1).ends(300, 'x', 'force-released', endOf(0)).runs(400, 5_000),
    new Traced('b')
      .call(100, 'forceRelease', { name: 'stock' }, { status: 'granted', id: 'x' })
      .acquired(120, 'y', 2)
      .released(200, 'y'),
  ],
  'a downgrade, beside which a reader enters': () => [
    new Traced('a')
      .acquired(0, 'x', 1)
      .call(50, 'downgrade', { name: 'stock', id: 'x', mode: EXCLUSIVE, token: '1' }, { status: 'held' })
      .released(200, 'x'),
    new Traced('b').acquired(60, 'y', 2, { mode: SHARED }).released(100, 'y'),
  ],
  'a lease that goes on in another process': () => [
    new Traced('a')
      .acquired(0, 'x', 1)
      .ends(50, 'x', 'transferred')
      .call(
        50,
        'attempt',
        { name: 'stock', id: 'x', adopts: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS },
        { status: 'granted', token: '2', countedFrom: 50 },
      )
      .runs(100, 5_000),
    new Traced('b').acquired(60, 'y', 3, { adopts: 'x' }).released(100, 'y').runs(150, 5_000),
  ],
  'a wait that ends by a timeout, and is abandoned': () => [
    new Traced()
      .call(
        0,
        'attempt',
        { name: 'stock', id: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS },
        { status: 'contended' },
        { enqueue: true },
      )
      .call(2, 'awaitTurn', { name: 'stock', id: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS }, undefined)
      .tell(500, 'gives-up', { acquisition: { name: 'stock', id: 'x' } })
      .abandoned(500, 'x')
      .runs(600, 5_000),
  ],
  'a grant that came too late, and is abandoned': () => [
    new Traced().granted(0, 'x', 1).abandoned(20, 'x').acquired(30, 'y', 2).released(40, 'y').runs(50, 5_000),
  ],
  'a process that stood still, and tells its loss afterwards': () => [
    new Traced('a').acquired(0, 'x', 1).ends(4_000, 'x', 'expired', endOf(0)).runs(4_010, 6_000),
    new Traced('b').acquired(1_001, 'y', 2).released(1_500, 'y'),
  ],
  'a process that was killed': () => [
    new Traced('a').acquired(0, 'x', 1),
    new Traced('b').acquired(1_001, 'y', 2).released(1_500, 'y').runs(1_500, 6_000),
  ],
};

test.each(Object.entries(clean))('%s breaks no rule', (_, processes) => {
  const { violations, rules } = verdictOn(processes());
  expect(violations).toEqual([]);
  expect(rules.some(({ checked }) => checked > 0)).toBe(true);
});

const permit = (weight: number, limit: number): Line => ({ mode: { kind: 'permit', weight, limit } });

/** What breaks each rule, and no other one. */
const broken: Readonly<Record<TraceRule, () => readonly Traced[]>> = {
  'belief-in-time': () => [
    new Traced()
      .granted(0, 'x', 1)
      .believes(1, 'x', endOf(0) + 1)
      .released(50, 'x'),
  ],
  'belief-granted': () => [
    new Traced()
      .call(
        0,
        'attempt',
        { name: 'stock', id: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS },
        { status: 'contended' },
        { enqueue: true },
      )
      .believes(2, 'x', endOf(0))
      .released(50, 'x'),
  ],
  'belief-ended': () => [new Traced().acquired(0, 'x', 1).released(50, 'x').believes(60, 'x', endOf(0))],
  'renewal-lost': () => [
    new Traced()
      .acquired(0, 'x', 1)
      .call(300, 'renew', { name: 'stock', id: 'x', ttlMs: TTL_MS }, { status: 'lost', reason: 'taken-over' })
      .believes(310, 'x', endOf(0))
      .released(350, 'x'),
  ],
  'renewal-sent': () => [
    new Traced()
      .acquired(0, 'x', 1, { renews: true })
      .runs(300, 980)
      .ends(989, 'x', 'expired', endOf(0))
      .runs(990, 5_000),
  ],
  'loss-told': () => [new Traced().acquired(0, 'x', 1).runs(300, 6_000)],
  'loss-told-first': () => [
    new Traced('a').acquired(0, 'x', 1).runs(900, 1_300).ends(1_310, 'x', 'expired', endOf(0)),
    new Traced('b').acquired(1_200, 'y', 2).released(1_250, 'y'),
  ],
  'loss-explained': () => [new Traced().acquired(0, 'x', 1).ends(300, 'x', 'force-released', endOf(0))],
  exclusion: () => [
    new Traced('a').acquired(0, 'x', 1).released(100, 'x'),
    new Traced('b').acquired(50, 'y', 2).released(150, 'y'),
  ],
  permits: () => [
    new Traced('a').acquired(0, 'x', 1, permit(2, 3)).released(100, 'x'),
    new Traced('b').acquired(50, 'y', 2, permit(2, 3)).released(150, 'y'),
  ],
  'token-order': () => [
    new Traced('a').acquired(0, 'x', 2).released(50, 'x'),
    new Traced('b').acquired(100, 'y', 1).released(150, 'y'),
  ],
  'token-kept': () => [
    new Traced()
      .acquired(0, 'x', 1)
      .call(300, 'renew', { name: 'stock', id: 'x', ttlMs: TTL_MS, token: '2' }, { status: 'held' })
      .released(350, 'x'),
  ],
  'token-own': () => [
    new Traced('a').acquired(0, 'x', 1, { mode: SHARED }).released(50, 'x'),
    new Traced('b').acquired(10, 'y', 1, { mode: SHARED }).released(60, 'y'),
  ],
  'token-present': () => [new Traced().acquired(0, 'x', undefined).released(50, 'x')],
  'given-back': () => [new Traced().granted(0, 'x', 1).runs(100, 5_000)],
  abandoned: () => [
    new Traced()
      .call(0, 'attempt', { name: 'stock', id: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS }, undefined, {
        enqueue: true,
      })
      .tell(500, 'gives-up', { acquisition: { name: 'stock', id: 'x' } })
      .runs(600, 5_000),
  ],
  'id-used-once': () => [
    new Traced()
      .call(0, 'attempt', { name: 'stock', id: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS }, { status: 'failed' })
      .abandoned(10, 'x')
      .call(
        20,
        'attempt',
        { name: 'stock', id: 'x', mode: EXCLUSIVE, ttlMs: TTL_MS },
        { status: 'contended' },
      ),
  ],
  entries: () => [
    new Traced()
      .acquired(0, 'x', 1)
      .tell(10, 'enters', { acquisition: { name: 'stock', id: 'x' }, scope: 2, within: 1 })
      .tell(20, 'enters', { acquisition: { name: 'stock', id: 'x' }, scope: 3, within: 1 })
      .released(50, 'x'),
  ],
  closed: () => [
    new Traced().acquired(0, 'x', 1).released(50, 'x').tell(60, 'closes', {}).abandoned(70, 'x'),
  ],
  idle: () => [],
};

test.each(Object.entries(broken).filter(([rule]) => rule !== 'idle'))(
  'the rule %s is broken, and no other one',
  (rule, processes) => {
    expect(brokenBy(...processes())).toEqual([rule]);
  },
);

test('an idle resource breaks a rule only where a limit is given', () => {
  const processes = [
    new Traced('a').acquired(0, 'x', 1).released(50, 'x'),
    new Traced('b')
      .call(
        10,
        'attempt',
        { name: 'stock', id: 'y', mode: EXCLUSIVE, ttlMs: TTL_MS },
        { status: 'contended' },
        { enqueue: true },
      )
      .acquired(900, 'y', 2)
      .released(950, 'y'),
  ];
  expect(verdictOn(processes).violations).toEqual([]);
  expect(verdictOn(processes, { idleMs: 500 }).violations.map(({ rule }) => rule)).toEqual(['idle']);
});

test('a violation names its clause, and the lines that show it', () => {
  const [violation] = verdictOn(broken.exclusion()).violations;
  expect(violation).toMatchObject({ rule: 'exclusion', clause: '§11.1', resource: 'stock' });
  expect(violation?.lines.map(({ line }) => line)).toEqual([4, 5, 4, 5]);
});

test.each([
  ['a release', 'released'],
  ['an unconfirmed end', 'unconfirmed'],
  ['a closed manager', 'closed'],
])('%s that is not sent leaves something behind', (_, why) => {
  expect(brokenBy(new Traced().acquired(0, 'x', 1).ends(50, 'x', why).runs(100, 5_000))).toEqual([
    'given-back',
  ]);
});

test('a loss of data excuses what was granted before it, and nothing that came after it', () => {
  const overlapping = (from: number) => [
    new Traced('a').acquired(from, 'x', 2).released(from + 100, 'x'),
    new Traced('b').acquired(from + 50, 'y', 1).released(from + 150, 'y'),
  ];
  const lost = [{ step: 'data-lost', time: 40, until: 1_000 }];
  expect(verdictOn(overlapping(0), {}, lost).violations).toEqual([]);
  expect(verdictOn(overlapping(2_000), {}, lost).violations).not.toEqual([]);
});

test('locks of different stores have nothing in common, and a store may have several backends', () => {
  const [a, b] = broken.exclusion() as [Traced, Traced];
  const client = b.lines[1] as Line;
  b.lines[1] = { ...client, backend: 'redis-node', store: 'other' };
  expect(brokenBy(a, b)).toEqual([]);
  b.lines[1] = { ...client, backend: 'redis-node' };
  expect(brokenBy(a, b)).toEqual(['exclusion']);
});

test('the clocks of several machines are compared by wall time, with a skew', () => {
  const held = (machine: string, wall: number, from: number, token: number): Traced => {
    const traced = new Traced(machine, { machine, wall });
    return traced.acquired(from, machine, token).released(from + 100, machine);
  };
  // The second one holds from 90 ms after the start of the first one's hold.
  const overlapping = [held('m1', 1_000_000, 0, 1), held('m2', 995_090, 5_000, 2)];
  expect(verdictOn(overlapping).violations).toEqual([]);
  expect(verdictOn(overlapping, { skewMs: 5 }).violations.map(({ rule }) => rule)).toEqual(['exclusion']);
  const [verdict] = [verdictOn(overlapping)];
  expect(verdict).toMatchObject({ machines: 2, skewMs: 100 });
});

test('lines that were dropped prove nothing by their absence', () => {
  const traced = new Traced().granted(0, 'x', 1).runs(100, 5_000);
  traced.lines.push({ step: 'dropped', time: 5_000, lines: 3 });
  expect(brokenBy(traced)).toEqual([]);
});

test('a trace that begins in the middle of a hold is no violation', () => {
  expect(brokenBy(new Traced().believes(10, 'x', 900).released(50, 'x').runs(100, 5_000))).toEqual([]);
});

test('where the backend has sessions, its leases have no end of their own', () => {
  const session = { capabilities: { tenure: 'session', fencing: 'durable' } };
  const held = new Traced('a', session)
    .granted(0, 'x', 1)
    .believes(1, 'x', 9_000)
    .runs(300, 20_000)
    .released(20_050, 'x');
  expect(brokenBy(held)).toEqual([]);
  const other = new Traced('b', session)
    .granted(15_000, 'y', 2)
    .believes(15_001, 'y', 30_000)
    .released(15_100, 'y');
  expect(brokenBy(held, other)).toEqual(['exclusion']);
});

test('a malformed line is told with its number, and the last line of a killed process is fine', () => {
  const begin = JSON.stringify(new Traced().lines[0]);
  const { lines, malformed, truncated } = parseTrace(`${begin}\n{"step":"nothing"}\nnot JSON\n{"step":"cl`);
  expect(lines).toHaveLength(1);
  expect(malformed.map(({ line }) => line)).toEqual([2, 3]);
  expect(truncated.map(({ line }) => line)).toEqual([4]);
});

test('the page on traces has the table of the rules, and each cites a clause of the specification', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/traces.md'), 'utf8');
  const spec = readFileSync(join(import.meta.dirname, '../../../docs/spec.md'), 'utf8');
  for (const [rule, [clause, what]] of Object.entries(TRACE_RULES)) {
    expect(page).toContain(`| \`${rule}\` | ${clause} | ${what} |`);
    expect(spec).toContain(`\n${clause.slice(1)} `);
  }
});
