import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { assertExclusive, machineNow, type Stay } from '../history.ts';
import { SafetyViolation } from '../safety-violation.ts';
import { needs, processes } from '../needs.ts';
import { grab, openCall, exclusiveRequest } from '../raw.ts';
import type { Stage } from '../stage.ts';

export const exclusionCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/second-attempt-is-contended',
    clause: '§11.1',
    title: 'while one client holds, another gets nothing; after the release it does',
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      const lease = await first.locks.lock(name).acquire();
      assert.equal(await second.locks.lock(name).tryAcquire(), undefined);
      assert.equal(await first.locks.lock(name).tryAcquire(), undefined);
      await lease.release();
      const next = await second.locks.lock(name).tryAcquire();
      assert.ok(next, 'free, and not granted');
      await next.release();
    },
  },
  {
    id: 'exclusion/three-processes-never-overlap',
    clause: '§11.1',
    title: 'three processes take turns in the critical section',
    ...needs(processes),
    async run(stage) {
      const name = stage.name();
      const children = await Promise.all([stage.child(), stage.child(), stage.child()]);
      const stays = await Promise.all(
        children.map((child, index) =>
          child.contend(name, `process ${index}`, { rounds: 30, stayMs: 1, waitMs: 30_000 }),
        ),
      );
      assert.equal(stays.flat().length, 90);
      assertExclusive(stays.flat(), stage.seed);
    },
  },
  {
    id: 'exclusion/many-clients-never-overlap',
    clause: '§11.1',
    title: 'six clients of one process take turns in the critical section',
    async run(stage) {
      const name = stage.name();
      const stays: Stay[] = [];
      const contend = async (who: string): Promise<void> => {
        const { locks } = await stage.client({ waitMs: 30_000 });
        for (let round = 0; round < 8; round += 1) {
          const lease = await locks.lock(name).acquire();
          const enteredAt = machineNow();
          await stage.sleep(stage.random.between(0, 2));
          stays.push({
            who: `${who} #${round}`,
            enteredAt,
            leftAt: machineNow(),
            token: lease.fencingToken?.toString(),
          });
          await lease.release();
        }
      };
      await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(contend));
      assert.equal(stays.length, 48);
      assertExclusive(stays, stage.seed);
    },
  },
  {
    id: 'exclusion/other-names-are-free',
    clause: '§11.2',
    title: 'holding one resource keeps nobody out of another',
    async run(stage) {
      const [first, second] = [await stage.client(), await stage.client()];
      const name = stage.name();
      const held = await first.locks.lock(name).acquire();
      for (const other of [stage.name(), `${name}x`, name.slice(0, -1)]) {
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
    title: 'an attempt inside the own hold is contended, of the same manager and of the same backend',
    async run(stage) {
      const name = stage.name();
      const { backend, locks } = await stage.client();
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
    title: 'nobody gets in while a lease is renewed for longer than its ttl',
    async run(stage) {
      const name = stage.name();
      const ttlMs = stage.livingTtlMs;
      const [holder, other] = [await stage.client({ ttlMs }), await stage.client()];
      const lease = await holder.locks.lock(name).acquire();
      const until = performance.now() + 1.5 * ttlMs;
      while (performance.now() < until) {
        const entered = await other.locks.lock(name).tryAcquire();
        if (entered !== undefined && lease.validForMs > 0)
          throw new SafetyViolation('somebody entered beside a holder that renews');
        assert.equal(entered, undefined, 'the lease was lost: it was not renewed in time');
        await stage.sleep(ttlMs / 10);
      }
      await lease.release();
      await holdsAlone(stage, name);
    },
  },
  {
    id: 'exclusion/at-once-one-wins',
    clause: '§11.1',
    title: 'of many attempts made at once on a free resource one is granted, and never two',
    async run(stage) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => stage.client()));
      let won = 0;
      // A quorum may split its votes, so that nobody has most of them.
      for (let round = 0; round < 25 && won < 5; round += 1) {
        const name = stage.name();
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

/** The resource is free, and after it was taken it is not. */
async function holdsAlone(stage: Stage, name: string): Promise<void> {
  const backend = await stage.backend();
  const grant = await grab(backend, name, 30_000);
  const attempt = await backend.attempt(exclusiveRequest(name, 30_000), false, openCall);
  assert.equal(attempt.status, 'contended');
  await backend.release(grant, openCall);
}
