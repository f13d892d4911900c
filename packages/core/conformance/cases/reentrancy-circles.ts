import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { isLockError } from '../../src/errors.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { Lease } from '../../src/lease.ts';
import type { Lock } from '../../src/lock.ts';
import type { ConformanceCase } from '../case.ts';
import type { CaseContext, Client } from '../case-context.ts';
import { needs, permits, shared } from '../needs.ts';

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

/** A lock of any mode, or several locks at once. */
interface Runs {
  run<T>(work: (lease: unknown) => Promise<T>): Promise<T>;
}

/** What a client holds, and what it waits for then. */
type Member = readonly [holds: Runs, waitsFor: Runs];

/** As many as the longest circle has members. */
type Managers = readonly [LockManager, LockManager, LockManager];

/** Holds the first, and waits for the second once `go` resolves. Gives the code of the error of that wait. */
function member([first, second]: Member, go: (lease: unknown) => Promise<void>): Promise<string | undefined> {
  return first.run(async (lease) => {
    await go(lease);
    return await second
      .run(async () => undefined)
      .catch((error: unknown) => {
        if (isLockError(error)) return error.code;
        throw error;
      });
  });
}

/** Lets clients wait for each other. Asserts that one of them gives up and all others go on, and gives what they held. */
async function oneGivesUp(
  context: CaseContext,
  circle: (clients: Managers) => readonly Member[],
): Promise<{ readonly isFound: boolean; readonly leases: readonly unknown[]; readonly one: Client }> {
  const { slackMs } = context.timing;
  const one = await context.client();
  await seeRuns(context);
  const isFound = await showsHolds(context, one);
  const options = { deadlockAfterMs: slackMs, waitMs: (isFound ? 20 : 4) * slackMs, ttlMs: 60_000 };
  const client = async (): Promise<LockManager> => (await context.client(options)).locks;
  const members = circle([await client(), await client(), await client()]);
  const leases: unknown[] = [];
  const go = async (lease: unknown): Promise<void> => {
    leases.push(lease);
    await context.until('all hold', () => leases.length === members.length);
  };
  const codes = await Promise.all(members.map((each) => member(each, go)));
  const refused = codes.filter((code) => code !== undefined);
  if (isFound)
    assert.deepEqual(refused, ['LOCK_DEADLOCK'], 'one must give up, and then all others are let in');
  else assert.ok(refused.every((code) => code === 'LOCK_TIMEOUT') && refused.length > 0, 'a wait must end');
  return { isFound, leases, one };
}

export const reentrancyCircleCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/circle-over-clients',
    clause: '§5.10',
    title:
      'of two clients that wait for what the other holds one ends with LOCK_DEADLOCK, the other goes on, and nothing is left',
    async run(context) {
      const { slackMs } = context.timing;
      const name = context.name();
      const { isFound, leases, one } = await oneGivesUp(context, ([first, second]) => [
        [first.lock(`${name} a`), first.lock(`${name} b`)],
        [second.lock(`${name} b`), second.lock(`${name} a`)],
      ]);
      if (!isFound) return;
      const endedAt = performance.now();
      for (const { acquisitionId } of leases as readonly Lease[]) {
        await context.until('nothing tells of the waits', async () => {
          const { holders } = await one.locks.inspect(WAITS + acquisitionId);
          return holders.length === 0;
        });
      }
      // Long before the ttl that ends what a dead process told.
      assert.ok(performance.now() - endedAt < 2 * slackMs, 'what tells of a wait outlived it');
    },
  },
  {
    id: 'reentrancy/circle-of-three-clients',
    clause: '§5.10',
    title: 'of three clients, each of which waits for what the next one holds, one ends with LOCK_DEADLOCK',
    async run(context) {
      const name = context.name();
      await oneGivesUp(context, ([first, second, third]) => [
        [first.lock(`${name} a`), first.lock(`${name} b`)],
        [second.lock(`${name} b`), second.lock(`${name} c`)],
        [third.lock(`${name} c`), third.lock(`${name} a`)],
      ]);
    },
  },
  {
    id: 'reentrancy/circle-of-readers',
    clause: '§5.10',
    title: 'of two clients that want to write what the other reads one ends with LOCK_DEADLOCK',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      await oneGivesUp(context, ([first, second]) => [
        [first.readWriteLock(`${name} a`).read, first.readWriteLock(`${name} b`).write],
        [second.readWriteLock(`${name} b`).read, second.readWriteLock(`${name} a`).write],
      ]);
    },
  },
  {
    id: 'reentrancy/circle-through-permits',
    clause: '§5.10',
    title: 'a circle through a semaphore ends with one LOCK_DEADLOCK where each permit is in it',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const slots = (locks: LockManager): Runs => locks.semaphore(`${name} slots`, 2);
      await oneGivesUp(context, ([first, second, third]) => [
        [slots(first), first.lock(`${name} b`)],
        [slots(second), second.lock(`${name} b`)],
        [third.lock(`${name} b`), slots(third)],
      ]);
    },
  },
  {
    id: 'reentrancy/circle-through-sets',
    clause: '§5.10',
    title: 'a circle through sets of locks, one held and one awaited, ends with one LOCK_DEADLOCK',
    async run(context) {
      const name = context.name();
      const set = (locks: LockManager, ...names: readonly string[]): Runs =>
        locks.all(names.map((each) => locks.lock(`${name} ${each}`)));
      await oneGivesUp(context, ([first, second]) => [
        [set(first, 'a', 'b'), first.lock(`${name} c`)],
        [second.lock(`${name} c`), set(second, 'b', 'd')],
      ]);
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
        member([first, one.locks.lock(`${name} b`)], go),
        member([other.locks.lock(`${name} b`), lockOf(other)], go),
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
