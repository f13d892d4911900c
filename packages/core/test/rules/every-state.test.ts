import { expect, it } from 'vitest';
import type { LockMode } from '../../src/backend/index.ts';
import { ResourceModel } from '../../conformance/model.ts';
import {
  type HoldRecord,
  type LockRecord,
  LockRules,
  type RulesRequest,
  type WaiterRecord,
} from '../../src/rules/index.ts';

const IDS = ['a', 'b', 'c'];
const MODES: readonly LockMode[] = [
  { kind: 'exclusive' },
  { kind: 'shared' },
  { kind: 'permit', limit: 2, weight: 1 },
  { kind: 'permit', limit: 2, weight: 2 },
  { kind: 'permit', limit: 3, weight: 2 },
];
const LIMITS = [2, 3];
const TTL = 100;
const NOW = 1_000;

/** One resource in both implementations. */
interface State {
  readonly record: LockRecord;
  readonly model: ResourceModel;
  /** The highest token of any grant so far. */
  readonly highest: number;
  /** The steps that led here. */
  readonly path: readonly string[];
}

interface Step {
  readonly name: string;
  /** What the rules answer. */
  decide(rules: LockRules): unknown;
  /** What they must answer, by the model. */
  expected(model: ResourceModel): unknown;
}

/** Every step that can be taken on a resource, also those that change nothing. */
function stepsFrom({ record, model }: State): Step[] {
  const isHeld = (id: string): boolean => model.holders.some(({ label }) => label === id);
  const isQueued = (id: string): boolean => model.queue.some(({ label }) => label === id);
  const tokenOf = (id: string): number => record.holds.find((hold) => hold.id === id)?.token ?? 0;
  const strangers = IDS.filter((id) => !isHeld(id) && !isQueued(id));
  const attempts = strangers.flatMap((id) => MODES.flatMap((mode) => attemptsOf(id, mode)));
  const ends = IDS.flatMap((id): Step[] => [
    {
      name: `${id} releases`,
      decide: (rules) => rules.release(id) !== undefined,
      expected: (next) => isHeld(id) && done(next.leaves(id)),
    },
    {
      name: `${id} is released by force`,
      decide: (rules) => rules.forceRelease(id).length === 1,
      expected: (next) => isHeld(id) && done(next.leaves(id)),
    },
    {
      name: `${id} is abandoned`,
      decide: (rules) => done(rules.abandon(id)),
      expected: (next) => done(next.leaves(id)),
    },
    {
      name: `${id} expires`,
      decide(rules) {
        rules.renew(id, tokenOf(id), 0);
        rules.commit(NOW);
        rules.expire(NOW);
        return done(rules.serve());
      },
      expected: (next) => done(isHeld(id) && next.leaves(id)),
    },
    {
      name: `${id} renews`,
      decide: (rules) => rules.renew(id, tokenOf(id), TTL).status,
      expected: () => (isHeld(id) ? 'held' : 'lost'),
    },
    {
      name: `${id} downgrades`,
      decide: (rules) => rules.downgrade(id, tokenOf(id)).status,
      expected: (next) => (isHeld(id) ? done(next.downgrades(id)) && 'held' : 'lost'),
    },
  ]);
  const repeated = [...model.holders, ...model.queue].map(
    ({ label: id, mode }): Step => ({
      name: `${id} attempts again`,
      decide: (rules) => rules.attempt({ acquisitionId: id, mode }, TTL, true).status,
      expected: () => (isHeld(id) ? 'granted' : 'contended'),
    }),
  );
  const resizes = LIMITS.map((limit): Step => {
    const isRefused = [...model.holders, ...model.queue].some(({ mode }) => mode.kind !== 'permit');
    return {
      name: `the limit becomes ${limit}`,
      decide: (rules) => rules.resize(limit) === undefined,
      expected: (next) => !isRefused && done(next.resizes(limit)),
    };
  });
  return [...attempts, ...ends, ...repeated, ...resizes];
}

function attemptsOf(id: string, mode: LockMode): Step[] {
  const text = `${id} ${textOf(mode)}`;
  const request = { acquisitionId: id, mode };
  const asked = () => ({ label: id, mode });
  return [
    {
      name: `${text} tries`,
      decide: (rules) => rules.attempt(request, TTL, false).status,
      expected(next) {
        if (next.conflicts(mode)) return 'conflict';
        return next.tries(asked()) ? 'granted' : 'contended';
      },
    },
    {
      name: `${text} comes to stay`,
      decide: (rules) => rules.attempt(request, TTL, true).status,
      expected(next) {
        if (next.conflicts(mode)) return 'conflict';
        next.enqueues(asked());
        return next.queue.at(-1)?.label === id ? 'contended' : 'granted';
      },
    },
    {
      name: `${text} steals`,
      decide: (rules) => rules.attempt({ ...request, steal: true }, TTL, false).status,
      expected: (next) => (next.steals(asked()) ? 'granted' : 'conflict'),
    },
  ];
}

/** Takes one step in both implementations, and compares them. */
function take(Rules: typeof LockRules, { record, model, highest, path }: State, step: Step): State {
  const rules = new Rules(record, { client: 'me' });
  rules.expire(NOW);
  rules.serve();
  const answer = step.decide(rules);
  rules.commit(NOW);
  const next = new ResourceModel();
  next.holders = model.holders.map((one) => ({ ...one }));
  next.queue = model.queue.map((one) => ({ ...one }));
  const expected = step.expected(next);
  const steps = [...path, step.name];
  const { holds, waiters, token } = rules;
  const about = `after: ${steps.join('; ')}`;
  if (answer !== expected)
    throw new Error(`the rules answer ${String(answer)}, the model ${String(expected)}, ${about}`);
  const [shown, modelled] = [textsOf(holds, waiters), textsOf(next.holders, next.queue)];
  if (shown !== modelled) throw new Error(`the rules have ${shown}, the model ${modelled}, ${about}`);
  const fresh = holds.filter((hold) =>
    record.holds.every((before) => before.token !== hold.token || before.id !== hold.id),
  );
  if (fresh.some((hold) => hold.token <= highest)) throw new Error(`a token does not rise, ${about}`);
  const state = { record: frozen({ token, holds, waiters }), model: next, path: steps };
  return { ...state, highest: Math.max(highest, ...holds.map((hold) => hold.token)) };
}

/** Takes every step in every state, breadth first; gives how many states there are. */
function walk(Rules: typeof LockRules): number {
  const start: State = {
    record: { token: 0, holds: [], waiters: [] },
    model: new ResourceModel(),
    highest: 0,
    path: [],
  };
  const seen = new Set(['[] before []']);
  for (let frontier = [start]; frontier.length > 0; ) {
    const found: State[] = [];
    for (const state of frontier) {
      for (const step of stepsFrom(state)) {
        const next = take(Rules, state, step);
        const key = textsOf(next.record.holds, next.record.waiters);
        if (!seen.has(key)) found.push(next);
        seen.add(key);
      }
    }
    frontier = found;
  }
  return seen.size;
}

it('the rules and the model of the suite agree after every step from every state of three acquisitions', () => {
  expect(walk(LockRules)).toBe(277);
});

const PLANTED: Readonly<Record<string, typeof LockRules>> = {
  'a reader fits beside a writer': class extends LockRules {
    override fits(mode: LockMode) {
      return mode.kind === 'shared' || super.fits(mode);
    }
  },
  'one permit more is given out': class extends LockRules {
    override fits(mode: LockMode) {
      return super.fits(mode.kind === 'permit' ? { ...mode, weight: mode.weight - 1 } : mode);
    }
  },
  'a newcomer who fits overtakes the queue': class extends LockRules {
    override admits(mode: LockMode) {
      return this.fits(mode);
    }
  },
  'a head that does not fit is passed over': class extends LockRules {
    override get next() {
      return this.waiters.find(({ mode }) => this.fits(mode));
    }
  },
  'only the head is served': class extends LockRules {
    override get next() {
      return this.holds.length === 0 ? super.next : undefined;
    }
  },
  'a token is given out again': class extends LockRules {
    override release(id: string) {
      this.token -= 1;
      return super.release(id);
    }
  },
  'a waiter is lost': class extends LockRules {
    override release(id: string) {
      const last = this.waiters.at(-1);
      const ended = super.release(id);
      if (ended !== undefined && last !== undefined) this.abandon(last.id);
      return ended;
    }
  },
  'a release ends the hold of somebody else': class extends LockRules {
    override release(id: string) {
      return super.release(id) ?? super.release(this.holds[0]?.id ?? id);
    }
  },
  'permits live beside other modes': class extends LockRules {
    override conflictWith() {
      return undefined;
    }
  },
  'a steal contradicts who waits': class extends LockRules {
    override attempt(request: RulesRequest, ttl: number, enqueue: boolean) {
      const { waiters } = this;
      if (request.steal === true) for (const { id } of waiters) this.abandon(id);
      const attempted = super.attempt(request, ttl, enqueue);
      if (request.steal === true)
        for (const { id, mode } of waiters) super.attempt({ acquisitionId: id, mode }, TTL, true);
      return attempted;
    }
  },
  'a renewal brings back what is gone': class extends LockRules {
    override renew(id: string, token: number, ttl: number) {
      this.attempt({ acquisitionId: id, mode: { kind: 'exclusive' } }, ttl, false);
      return super.renew(id, token, ttl);
    }
  },
  'a step changes the record that it was made from': class extends LockRules {
    constructor(...[record, context]: ConstructorParameters<typeof LockRules>) {
      super(record, context);
      for (const waiter of record.waiters) waiter.since = 0;
    }
  },
};

it.each(Object.entries(PLANTED))('the walk finds it when %s', (_, Broken) => {
  expect(() => walk(Broken)).toThrow();
});

function done(_result: unknown): true {
  return true;
}

function textOf(mode: LockMode): string {
  return mode.kind === 'permit' ? `${mode.weight}/${mode.limit}` : mode.kind;
}

type Shown = { readonly mode: LockMode } & ({ readonly id: string } | { readonly label: string });

function textsOf(
  holders: readonly (HoldRecord | { label: string; mode: LockMode })[],
  queue: readonly (WaiterRecord | { label: string; mode: LockMode })[],
): string {
  const texts = (all: readonly Shown[]): string =>
    all.map((one) => `${'id' in one ? one.id : one.label} ${textOf(one.mode)}`).join(', ');
  return `[${texts(holders as Shown[])}] before [${texts(queue as Shown[])}]`;
}

/** A step that changes the state from which it was decided throws. */
function frozen(record: LockRecord): LockRecord {
  for (const entry of [...record.holds, ...record.waiters]) Object.freeze(entry);
  return Object.freeze(record);
}
