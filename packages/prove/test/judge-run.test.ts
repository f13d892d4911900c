import { checkHistory } from '@locks/history';
import { describe, expect, it } from 'vitest';
import { Disturbances } from '../src/judge/disturbances.ts';
import type { JudgedRun } from '../src/judge/findings.ts';
import { judgeRun } from '../src/judge/judge-run.ts';
import type { ObservedHold, RunRecord, WaitFact } from '../src/judge/run-record.ts';
import type { Strike } from '../src/faults.ts';

const PREFIX = 'locks-prove/x/';
const CAPABILITIES: JudgedRun['capabilities'] = {
  tenure: 'lease',
  renewal: 'any-client',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 1, stepMs: 1 },
  features: ['list'],
};

let ids = 0;
const hold = (
  lock: string,
  worker: string,
  [askedAt, from, until]: readonly [number, number, number],
  end: ObservedHold['end'] = 'released',
): ObservedHold => ({
  ...{ worker, resource: `${PREFIX}${lock}`, acquisitionId: String((ids += 1)), mode: { kind: 'exclusive' } },
  ...{ hasToken: true, askedAt, from, until, end },
});
const wait = (
  lock: string,
  worker: string,
  [askedAt, endedAt]: readonly [number, number],
  more: Partial<WaitFact> = {},
): WaitFact => ({
  ...{
    kind: 'wait',
    resource: `${PREFIX}${lock}`,
    worker,
    askedAt,
    endedAt,
    waitMs: 7_500,
    outcome: 'granted',
  },
  ...more,
});
const strike = (fault: Strike['fault'], worker: string, from: number, until: number): Strike => ({
  fault,
  worker,
  from,
  until,
  detail: '',
});

interface Given extends Partial<RunRecord> {
  readonly strikes?: readonly Strike[];
  readonly more?: Partial<JudgedRun>;
}

function verdictsOf({ strikes = [], more = {}, ...given }: Given) {
  const empty: RunRecord = {
    verdict: checkHistory([]),
    holds: [],
    waits: [],
    stalls: new Map(),
    crashes: new Map(),
    deadWaits: [],
    lossReasons: new Map(),
  };
  const record = { ...empty, ...given };
  const promises = judgeRun({
    ...{
      record,
      disturbances: new Disturbances(record, strikes, [], 3_000),
      capabilities: CAPABILITIES,
      isOther: false,
    },
    ...{ prefix: PREFIX, holdMs: 1_500, slackMs: 750, late: [], leftBehind: [], ...more },
  });
  return Object.fromEntries(
    promises.map(({ id, tested, verdict, breaches }) => [id, { tested, verdict, breaches }]),
  );
}

describe('the lock of a dead holder', () => {
  const dead = hold('brief-1', 'worker 1', [0, 10, 1_000], 'crashed');
  const next = (at: number) => ({
    holds: [dead, hold('brief-1', 'worker 2', [500, at, at + 10])],
    waits: [wait('brief-1', 'worker 2', [500, at])],
  });

  it('is free in time', () => {
    expect(verdictsOf(next(2_400))['crash']).toMatchObject({ tested: 1, verdict: 'kept' });
  });
  it('is refused for too long', () => {
    const { crash } = verdictsOf(next(5_000));
    expect(crash).toMatchObject({
      verdict: 'broken',
      breaches: [expect.stringContaining('was refused to worker 2 for 4000 ms')],
    });
  });
  it('is refused to somebody whose network was broken: that shows nothing', () => {
    const given = { ...next(5_000), strikes: [strike('cut', 'worker 2', 1_200, 2_000)] };
    expect(verdictsOf(given)['crash']).toMatchObject({ tested: 0, verdict: 'not tested' });
  });
  it.each([
    [400, 'not tested'],
    [600, 'broken'],
  ])('may go to a waiter of the same worker first, which asked at %i: %s', (askedAt, verdict) => {
    const deadWaits = [{ worker: 'worker 1', resource: dead.resource, askedAt }];
    expect(verdictsOf({ ...next(5_000), deadWaits })['crash']).toMatchObject({ verdict });
  });
  it('is refused until the wait ends', () => {
    const waits = [wait('brief-1', 'worker 2', [500, 8_000], { outcome: 'refused' })];
    expect(verdictsOf({ holds: [dead], waits })['crash']).toMatchObject({ tested: 1, verdict: 'broken' });
  });
});

describe('the order', () => {
  const queue = (...grants: readonly (readonly [worker: string, askedAt: number, from: number])[]) => ({
    holds: grants.map(([worker, askedAt, from]) => hold('queue', worker, [askedAt, from, from + 50])),
  });

  it('is kept', () => {
    const given = queue(['worker 1', 0, 1_000], ['worker 2', 500, 1_100], ['worker 3', 950, 1_200]);
    expect(verdictsOf(given)['order']).toMatchObject({ tested: 2, verdict: 'kept' });
  });
  it('is broken by one who came later', () => {
    const { order } = verdictsOf(queue(['worker 1', 0, 1_000], ['worker 2', 500, 900]));
    expect(order).toMatchObject({
      verdict: 'broken',
      breaches: ['worker 2 was served before worker 1, which had asked 500 ms earlier.'],
    });
  });
  it('is not known of two who came at nearly the same time', () => {
    expect(verdictsOf(queue(['worker 1', 0, 1_000], ['worker 2', 100, 900]))['order']).toMatchObject({
      tested: 0,
    });
  });
  it('is excused for a waiter that stood still', () => {
    const stalls = new Map([['worker 1', [{ from: 200, until: 900 }]]]);
    const given = { ...queue(['worker 1', 0, 1_000], ['worker 2', 500, 900]), stalls };
    expect(verdictsOf(given)['order']).toMatchObject({ tested: 0 });
  });
  it('is not known while the store answers that slowly, nor of the first calls of a worker', () => {
    const given = queue(['worker 1', 0, 1_000], ['worker 2', 500, 900]);
    const slow = [wait('hurried', 'worker 3', [0, 450], { waitMs: 50, outcome: 'refused' })];
    expect(verdictsOf({ ...given, waits: slow })['order']).toMatchObject({ tested: 0 });
    const first = [wait('queue', 'worker 1', [0, 1_000])];
    expect(verdictsOf({ ...given, waits: first })['order']).toMatchObject({ tested: 0 });
  });
  it('is not promised by locks without a queue', () => {
    const more = { capabilities: { ...CAPABILITIES, order: 'none' as const } };
    expect(verdictsOf({ more })['order']).toMatchObject({ verdict: 'not promised' });
  });
});

describe('a wait', () => {
  it.each([
    ['in its time', [0, 100], { waitMs: 80 }, 'kept'],
    ['too late', [0, 2_000], { waitMs: 80 }, 'broken'],
    [
      'too late, behind a broken network: that is no excuse',
      [0, 2_000],
      { waitMs: 80, outcome: 'failed' },
      'broken',
    ],
  ] as const)('ends %s', (_, times, more, verdict) => {
    const given = {
      waits: [wait('hurried', 'worker 1', times, more)],
      strikes: [strike('cut', 'worker 1', 0, 1_000)],
    };
    expect(verdictsOf(given)['waits']).toMatchObject({ tested: 1, verdict });
  });
  it('may be longer by the time for which its process stood still', () => {
    const stalls = new Map([['worker 1', [{ from: 50, until: 1_950 }]]]);
    const waits = [wait('hurried', 'worker 1', [0, 2_000], { waitMs: 80 })];
    expect(verdictsOf({ waits, stalls })['waits']).toMatchObject({ verdict: 'kept' });
  });
  it('never ends', () => {
    expect(verdictsOf({ more: { late: ['worker 1'] } })['waits']).toMatchObject({ verdict: 'broken' });
  });
  it('that is aborted ends at once', () => {
    const aborted = (endedAt: number) =>
      verdictsOf({
        waits: [wait('hurried', 'worker 1', [0, endedAt], { abortedAt: 20, outcome: 'failed' })],
      })['aborts'];
    expect([aborted(21)?.verdict, aborted(1_500)?.verdict]).toEqual(['kept', 'broken']);
  });
});

describe('a renewed lease', () => {
  it('stays, and its loss without a fault is a breach', () => {
    const kept = hold('renewed', 'worker 1', [5_000, 5_000, 8_000]);
    const lost = hold('renewed', 'worker 2', [9_000, 9_000, 11_000], 'lost');
    expect(verdictsOf({ holds: [kept] })['renewal']).toMatchObject({ tested: 1, verdict: 'kept' });
    expect(verdictsOf({ holds: [kept, lost] })['renewal']).toMatchObject({ tested: 2, verdict: 'broken' });
    const lossReasons = new Map([[`${lost.resource} ${lost.acquisitionId}`, 'unconfirmed']]);
    expect(verdictsOf({ holds: [kept, lost], lossReasons })['renewal']).toMatchObject({
      tested: 1,
      verdict: 'kept',
    });
    const strikes = [strike('long-pause', 'worker 2', 9_500, 10_900)];
    expect(verdictsOf({ holds: [kept, lost], strikes })['renewal']).toMatchObject({
      tested: 1,
      verdict: 'kept',
    });
  });
});

it('what is left behind is named', () => {
  const more = { leftBehind: [{ name: `${PREFIX}queue`, what: 'is still listed as held or waited for' }] };
  expect(verdictsOf({ more })['nothing-left']).toMatchObject({
    verdict: 'broken',
    breaches: [`"${PREFIX}queue" is still listed as held or waited for.`],
  });
});
