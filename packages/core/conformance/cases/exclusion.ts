import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { assertExclusive, enter, type CriticalSection } from '../critical-section.ts';
import { SafetyViolation } from '../safety-violation.ts';
import { needs, processes } from '../needs.ts';
import { grab, openCall, exclusiveRequest } from '../raw.ts';
import type { CaseContext } from '../case-context.ts';
import { LEAST_ROUNDS, roundsUpTo } from '../rounds.ts';

export const exclusionCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/second-attempt-is-contended',
    clause: '§11.1',
    title: 'while one client holds the lock, another is refused; after the release it is granted',
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client()];
      const lease = await first.locks.lock(name).acquire();
      assert.equal(await second.locks.lock(name).tryAcquire(), undefined);
      assert.equal(await first.locks.lock(name).tryAcquire(), undefined);
      await lease.release();
      const next = await second.locks.lock(name).tryAcquire();
      assert.ok(next, 'the lock is free, and was not granted');
      await next.release();
    },
  },
  {
    id: 'exclusion/three-processes-never-overlap',
    clause: '§11.1',
    title: 'three processes take turns in the critical section',
    ...needs(processes),
    async run(context) {
      const name = context.name();
      const children = await Promise.all([context.child(), context.child(), context.child()]);
      const sections = await Promise.all(
        children.map((child, index) =>
          child.contend(name, `process ${index}`, { rounds: 30, holdMs: 1, waitMs: 30_000 }),
        ),
      );
      assert.ok(sections.flat().length >= 3 * LEAST_ROUNDS);
      assertExclusive(sections.flat(), context.seed);
    },
  },
  {
    id: 'exclusion/many-clients-never-overlap',
    clause: '§11.1',
    title: 'six clients of one process take turns in the critical section',
    async run(context) {
      const name = context.name();
      const sections: CriticalSection[] = [];
      const contend = async (who: string): Promise<void> => {
        const { locks } = await context.client({ waitMs: 30_000 });
        for (const round of roundsUpTo(8)) {
          const lease = await locks.lock(name).acquire();
          sections.push(
            await enter(lease, `${who} #${round}`, () => context.sleep(context.random.between(0, 2))),
          );
        }
      };
      await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(contend));
      assert.ok(sections.length >= 6 * LEAST_ROUNDS);
      assertExclusive(sections, context.seed);
    },
  },
  {
    id: 'exclusion/other-names-are-free',
    clause: '§11.2',
    title: 'a hold of one resource does not block another resource',
    async run(context) {
      const [first, second] = [await context.client(), await context.client()];
      const name = context.name();
      const held = await first.locks.lock(name).acquire();
      for (const other of [context.name(), `${name}x`, name.slice(0, -1)]) {
        const lease = await second.locks.lock(other).tryAcquire();
        assert.ok(lease, `${JSON.stringify(name)} is held, and ${JSON.stringify(other)} was refused`);
        await lease.release();
      }
      await held.release();
    },
  },
  {
    id: 'exclusion/own-hold-excludes-too',
    clause: '§11.1',
    title:
      'a second attempt of the holder is contended, through the same manager and through the same backend',
    async run(context) {
      const name = context.name();
      const { backend, locks } = await context.client();
      const lease = await locks.lock(name).acquire();
      assert.equal(await locks.lock(name).tryAcquire(), undefined);
      const attempt = await backend.attempt(exclusiveRequest(name, 30_000), false, openCall);
      assert.equal(attempt.status, 'contended');
      await lease.release();
    },
  },
  {
    id: 'exclusion/holds-through-renewals',
    clause: '§11.1',
    title: 'nobody else is granted while a lease is renewed for longer than its ttl',
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      const [holder, other] = [await context.client({ ttlMs }), await context.client()];
      const lease = await holder.locks.lock(name).acquire();
      const until = performance.now() + 1.5 * ttlMs;
      while (performance.now() < until) {
        const entered = await other.locks.lock(name).tryAcquire();
        if (entered !== undefined && lease.validForMs > 0)
          throw new SafetyViolation('somebody entered beside a holder that renews');
        assert.equal(entered, undefined, 'the lease was lost: it was not renewed in time');
        await context.sleep(ttlMs / 10);
      }
      await lease.release();
      await holdsAlone(context, name);
    },
  },
  {
    id: 'exclusion/at-once-one-wins',
    clause: '§11.1',
    title: 'of many attempts made at once on a free resource one is granted, and never two',
    async run(context) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => context.client()));
      let won = 0;
      // A quorum may split its votes, so that nobody has a majority.
      for (let round = 0; round < 25 && won < 5; round += 1) {
        const name = context.name();
        const attempts = clients.flatMap(({ locks }) => [1, 2].map(() => locks.lock(name).tryAcquire()));
        const granted = (await Promise.all(attempts)).filter((lease) => lease !== undefined);
        if (granted.length > 1) {
          throw new SafetyViolation(`${granted.length} of ${attempts.length} were granted`);
        }
        await granted[0]?.release();
        won += granted.length;
      }
      assert.equal(won, 5, 'many attempts at once keep each other out');
    },
  },
];

/** Checks that the resource is free, and no longer free once it was taken. */
async function holdsAlone(context: CaseContext, name: string): Promise<void> {
  const backend = await context.backend();
  const grant = await grab(backend, name, 30_000);
  const attempt = await backend.attempt(exclusiveRequest(name, 30_000), false, openCall);
  assert.equal(attempt.status, 'contended');
  await backend.release(grant, openCall);
}
