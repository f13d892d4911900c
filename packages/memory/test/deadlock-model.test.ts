import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Holder, ResourceState } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { CircleJudge } from './deadlock-model/circle-judge.ts';
import { type Lie, PERIOD, runScript, type Script, WAITS } from './deadlock-model/run-script.ts';
import { rings, scriptOf } from './deadlock-model/scripts.ts';

/** How many scripts run side by side in fake time. */
const AT_ONCE = 25;
/** How many random scripts there are: more is a long run. */
const SEEDS = Number(process.env['LOCKS_DEADLOCK_SEEDS'] ?? 400);

const workloads = Array.from({ length: SEEDS }, (_, seed) => scriptOf(seed + 1));

beforeEach(async () => {
  // What looks for circles is loaded by the first long wait, which no fake time can hasten.
  const [script] = rings(2);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  await judgesOf([script as Script]);
});
afterEach(() => vi.useRealTimers());

async function judgesOf(scripts: readonly Script[], lie?: Lie): Promise<CircleJudge[]> {
  const judges: CircleJudge[] = [];
  for (let first = 0; first < scripts.length; first += AT_ONCE) {
    const batch = Promise.all(scripts.slice(first, first + AT_ONCE).map((script) => runScript(script, lie)));
    let isOver = false;
    void batch.finally(() => (isOver = true));
    while (!isOver) await vi.advanceTimersByTimeAsync(PERIOD);
    judges.push(...(await batch));
  }
  return judges;
}

/** Fails for any violation, and where hardly any circle stood. */
async function expectNoViolation(scripts: readonly Script[], leastCircles: number): Promise<void> {
  const judges = await judgesOf(scripts);
  const violations = judges.flatMap((judge, index) =>
    judge.violations.map((violation) => `${scripts[index]?.name}: ${violation}`),
  );
  expect(violations).toEqual([]);
  expect(judges.flatMap(({ stoodMs }) => stoodMs).length).toBeGreaterThan(leastCircles);
}

describe('every circle is found in time, has one victim, the youngest, and there is no other victim', () => {
  test.each([
    { count: 2, least: 20 },
    { count: 3, least: 100 },
    { count: 4, least: 80 },
  ])('in all rings of $count, in all modes, with a fault and without', async ({ count, least }) => {
    await expectNoViolation([...rings(count)], least);
  });

  test(`in ${SEEDS} workloads at random`, async () => {
    await expectNoViolation(workloads, SEEDS / 20);
  });
});

/** What stands for a rule that core breaks: the store answers each member as if there were no such rule. */
const LIES: readonly { readonly says: string; readonly found: RegExp; readonly lie: Lie }[] = [
  {
    says: 'nothing tells of a wait',
    found: /ended with LOCK_TIMEOUT/,
    lie: (backend) => ({
      inspect: async (name, ...more) =>
        name.startsWith(WAITS) ? { name, holders: [], waiters: [] } : backend.inspect(name, ...more),
    }),
  },
  {
    says: 'the second reading is the first one',
    found: /is a victim without a circle/,
    lie: (backend) => {
      const answers = new Map<string, { readonly state: Promise<ResourceState>; readonly at: number }>();
      return {
        inspect: (name, ...more) => {
          const known = answers.get(name);
          if (known !== undefined && performance.now() - known.at < 3 * PERIOD) return known.state;
          const state = backend.inspect(name, ...more);
          answers.set(name, { state, at: performance.now() });
          return state;
        },
      };
    },
  },
  {
    says: 'an edge counts for as long as the store has it',
    found: /is a victim without a circle/,
    lie: (backend) => ({
      inspect: (name, ...more) =>
        onEdges(backend.inspect(name, ...more), (edge) => ({ ...edge, expiresInMs: undefined })),
    }),
  },
  {
    says: 'each member takes itself for the youngest',
    found: /is a victim, and not the youngest/,
    lie: (backend) => withIds(backend, () => '000000000'),
  },
  {
    says: 'the oldest gives up',
    found: /is a victim, and not the youngest/,
    lie: (backend) => withIds(backend, (label, own) => (label > own ? '000000000' : 'zzzzzzzzz')),
  },
];

/** Shows the waits of others with another age. */
function withIds(backend: LockBackend, ageOf: (label: string, own: string) => string): Partial<LockBackend> {
  let own = '';
  return {
    attempt: (request, ...more) => {
      if (request.resource.startsWith(WAITS)) own = request.label as string;
      return backend.attempt(request, ...more);
    },
    attemptMany: async (requests, ...more) => {
      if (requests[0]?.resource.startsWith(WAITS) === true) own = requests[0].label as string;
      return backend.attemptMany?.(requests, ...more);
    },
    inspect: (name, ...more) =>
      onEdges(backend.inspect(name, ...more), (edge) => {
        const { label = '' } = edge;
        return label === own ? edge : { ...edge, label: label.replace(/^1 \w+/, `1 ${ageOf(label, own)}`) };
      }),
  };
}

async function onEdges(
  read: Promise<ResourceState>,
  change: (edge: Holder) => Holder,
): Promise<ResourceState> {
  const state = await read;
  return state.name.startsWith(WAITS) ? { ...state, holders: state.holders.map(change) } : state;
}

test.each(LIES)('the judge sees that $says', async ({ found, lie }) => {
  const judges = await judgesOf([...rings(2), ...workloads.slice(0, 50)], lie);
  expect(judges.flatMap(({ violations }) => violations)).toContainEqual(expect.stringMatching(found));
});
