import { setTimeout as delay } from 'node:timers/promises';
import type { LockBackend } from '@locks/core/backend';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { type WebLockMode, webLocks } from '../src/index.ts';
import { changed } from './changed-backend.ts';
import { failure } from './hold.ts';
import { randomFrom } from './random-from.ts';
import { type ModelRequest, SpecifiedManager } from './specified-manager.ts';

const NAMES = ['a', 'b', 'c'];
const TURNS = 15;

/** A pool of connections as its worst: every call takes another while, so that later ones arrive sooner. */
function scrambled(random: (below: number) => number): LockBackend {
  const store = new MemoryStore();
  const inner: LockBackend = memoryBackend(store);
  const late = async <T>(call: () => Promise<T>): Promise<T> => {
    await delay(random(4));
    const answer = await call();
    await delay(random(4));
    return answer;
  };
  return changed(
    store,
    {},
    {
      attempt: (request, enqueue, call) => late(() => inner.attempt(request, enqueue, call)),
      release: (grant, call) => late(() => inner.release(grant, call)),
      abandon: (request, call) => late(() => inner.abandon(request, call)),
    },
  );
}

interface Live {
  readonly model: ModelRequest;
  /** Absent where the request takes no signal. */
  readonly aborter: AbortController | undefined;
  readonly outcome: Promise<unknown>;
  release(): void;
}

describe('many calls of one client in one turn', () => {
  it.each(Array.from({ length: 10 }, (_, seed) => seed + 1))(
    'do what the specification does (seed %i)',
    async (seed) => {
      const random = randomFrom(seed);
      await using locks = webLocks(scrambled(random), { ttlMs: 600_000 });
      const model = new SpecifiedManager();
      const live = new Map<number, Live>();
      const called: number[] = [];
      const expectedOutcomes: [Promise<unknown>, unknown][] = [];
      let made = 0;

      const request = (name: string, mode: WebLockMode, how: 'plain' | 'ifAvailable' | 'steal'): void => {
        const wanted = { id: (made += 1), client: 0, name, mode };
        const heldBefore = [...model.held];
        const expected = model.request(wanted, how);
        const aborter = new AbortController();
        let release!: () => void;
        const work = new Promise<void>((resolve) => (release = resolve));
        const options = how === 'plain' ? { mode, signal: aborter.signal } : { mode, [how]: true };
        const outcome = failure(
          locks.request(name, options, (lock) => {
            if (lock === null) return 'not available';
            called.push(wanted.id);
            return work;
          }),
        );
        if (expected === null) expectedOutcomes.push([outcome, { resolved: 'not available' }]);
        else {
          const own = how === 'plain' ? aborter : undefined;
          live.set(wanted.id, { model: wanted, aborter: own, outcome, release });
        }
        for (const one of heldBefore) if (!model.held.includes(one)) end(one, 'AbortError');
      };
      const end = (one: ModelRequest, how: unknown): Live => {
        const ended = live.get(one.id) as Live;
        live.delete(one.id);
        expectedOutcomes.push([ended.outcome, how]);
        return ended;
      };

      for (let turn = 0; turn < TURNS; turn += 1) {
        const calledBefore = new Set(model.held);
        const neverCalled = new Set<number>();
        // A lock that is granted by an abort and stolen in the same turn: see docs/web-locks.md.
        const withSteal = random(3) === 0;
        for (let calls = 1 + random(8); calls > 0; calls -= 1) {
          const name = NAMES[random(NAMES.length)] as string;
          const abortable = [...live.values()].filter(
            (one) => one.aborter !== undefined && !calledBefore.has(one.model),
          );
          const aborted = abortable[random(Math.max(1, abortable.length))];
          if (!withSteal && random(4) === 0 && aborted !== undefined) {
            neverCalled.add(aborted.model.id);
            model.remove(aborted.model);
            end(aborted.model, 'stop').aborter?.abort('stop');
          } else if (withSteal && random(4) === 0) request(name, 'exclusive', 'steal');
          else
            request(
              name,
              random(2) === 0 ? 'shared' : 'exclusive',
              random(4) === 0 ? 'ifAvailable' : 'plain',
            );
        }
        // What is released in a turn comes after what it requested.
        for (const one of [...model.held]) {
          if (!calledBefore.has(one) || random(2) === 0) continue;
          model.remove(one);
          end(one, { resolved: undefined }).release();
        }
        for (const [outcome, expected] of expectedOutcomes.splice(0)) expect(await outcome).toEqual(expected);
        await expect
          .poll(() => model.held.filter(({ id }) => !called.includes(id)), { interval: 2 })
          .toEqual([]);
        expect(called.filter((id) => neverCalled.has(id))).toEqual([]);
        const say = ({ name, mode }: { name: string; mode: string }): string => `${name} ${mode}`;
        const { held, pending } = await locks.query();
        expect(held.map(say).toSorted()).toEqual(model.held.map(say).toSorted());
        expect(pending.map(say).toSorted()).toEqual(model.queue.map(say).toSorted());
      }
      expect(called.filter((id) => model.queue.some((one) => one.id === id))).toEqual([]);
      for (const { release } of live.values()) release();
    },
  );
});
