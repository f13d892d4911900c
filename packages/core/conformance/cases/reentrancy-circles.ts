import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { isLockError } from '../../src/errors.ts';
import type { Lock } from '../../src/lock.ts';
import type { ConformanceCase } from '../case.ts';
import type { CaseContext, Client } from '../case-context.ts';

/** The beginning of the names of locks that tell of waits. */
const WAITS = '@locks/waits/';

/** Whether the store shows the id and the label of a hold: without them nobody can tell who waits. */
async function showsHolds(context: CaseContext, { locks }: Client): Promise<boolean> {
  await using lease = await locks.lock(context.name(), { label: 'shown' }).acquire();
  const { holders } = await locks.inspect(lease.name);
  return holders.some(
    ({ acquisitionId, label }) => acquisitionId === lease.acquisitionId && label === 'shown',
  );
}

/** Where core cannot see what is around the waiting code, a `run` that was reentrant makes it visible. */
async function seeRuns(context: CaseContext): Promise<void> {
  const { locks } = await context.client({ reentrant: true });
  await locks.lock(context.name()).run(() => {});
}

/** Holds `first`, and waits for `second` once `go` resolves. Gives the code of the error of that wait. */
function member(
  first: Lock,
  second: Lock,
  go: (holdId: string) => Promise<void>,
): Promise<string | undefined> {
  return first.run(async ({ acquisitionId }) => {
    await go(acquisitionId);
    return await second
      .run(() => undefined)
      .catch((error: unknown) => {
        if (isLockError(error)) return error.code;
        throw error;
      });
  });
}

export const reentrancyCircleCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/circle-over-clients',
    clause: '§5.10',
    title:
      'of two clients that wait for what the other holds one ends with LOCK_DEADLOCK, the other goes on, and nothing is left',
    async run(context) {
      const { slackMs } = context.timing;
      const options = { deadlockAfterMs: slackMs, waitMs: 20 * slackMs, ttlMs: 60_000 };
      const [one, other] = [await context.client(options), await context.client(options)];
      await seeRuns(context);
      const isFound = await showsHolds(context, one);
      const name = context.name();
      const holdIds: string[] = [];
      const go = async (holdId: string): Promise<void> => {
        holdIds.push(holdId);
        await context.until('both hold', () => holdIds.length === 2);
      };
      const codes = await Promise.all([
        member(one.locks.lock(`${name} a`), one.locks.lock(`${name} b`), go),
        member(other.locks.lock(`${name} b`), other.locks.lock(`${name} a`), go),
      ]);
      const refused = codes.filter((code) => code !== undefined);
      if (!isFound) {
        assert.ok(refused.every((code) => code === 'LOCK_TIMEOUT') && refused.length > 0, 'a wait must end');
        return;
      }
      assert.deepEqual(
        refused,
        ['LOCK_DEADLOCK'],
        'one of the two must give up, and then the other is let in',
      );
      const endedAt = performance.now();
      for (const holdId of holdIds) {
        await context.until('nothing tells of the waits', async () => {
          const { holders } = await one.locks.inspect(WAITS + holdId);
          return holders.length === 0;
        });
      }
      // Long before the ttl that ends what a dead process told.
      assert.ok(performance.now() - endedAt < 2 * slackMs, 'what tells of a wait outlived it');
    },
  },
  {
    id: 'reentrancy/long-wait-is-no-circle',
    clause: '§5.10',
    title: 'a long wait goes on where somebody outside of it may still give back what it waits for',
    async run(context) {
      const { slackMs } = context.timing;
      const deadlockAfterMs = slackMs / 2;
      const options = { deadlockAfterMs, waitMs: 60 * slackMs, ttlMs: 60_000 };
      const clients = [await context.client(options), await context.client(options)] as const;
      const [one, other] = clients;
      await seeRuns(context);
      const name = context.name();
      // With permits the two wait for each other but for the second permit; without them they wait in a chain.
      const hasPermits = one.backend.capabilities.modes.includes('permit');
      const lockOf = ({ locks }: Client): Lock =>
        hasPermits
          ? (locks.semaphore(`${name} slots`, 2) as unknown as Lock)
          : (locks.lock(`${name} free`) as Lock);
      const free = await lockOf(other).acquire();
      let waits = 0;
      const go = async (): Promise<void> => {
        waits += 1;
        await context.until('both hold', () => waits === 2);
      };
      const first = hasPermits ? lockOf(one) : (one.locks.lock(`${name} own`) as Lock);
      const outcomes = [
        member(first, one.locks.lock(`${name} b`), go),
        member(other.locks.lock(`${name} b`), lockOf(other), go),
      ];
      await Promise.race([delay(6 * deadlockAfterMs), ...outcomes]);
      await free.release();
      assert.deepEqual(
        await Promise.all(outcomes),
        [undefined, undefined],
        'a wait without a circle was ended',
      );
    },
  },
];
