import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { assertCompatible, assertRising, enter, type CriticalSection } from '../critical-section.ts';
import { fencing, forceRelease, leaseTenure, needs, processes, shared } from '../needs.ts';
import { EXCLUSIVE, grab, holdersOf, openCall, requestOf, SHARED } from '../raw.ts';
import { LEAST_ROUNDS, roundsUpTo } from '../rounds.ts';
import { granted, startWaitingFor, watch } from '../waiter.ts';

export const sharedCases: readonly ConformanceCase[] = [
  {
    id: 'shared/readers-hold-together',
    clause: '§15.1',
    title: 'two clients read at once, and no writer enters until the last of them has released',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const [one, two, writer] = [await context.client(), await context.client(), await context.client()];
      const first = await one.locks.readWriteLock(name).read.acquire();
      const second = await two.locks.readWriteLock(name).read.tryAcquire();
      assert.ok(second, 'a second reader was refused');
      assert.equal(await writer.locks.lock(name).tryAcquire(), undefined);
      await first.release();
      assert.equal(await writer.locks.readWriteLock(name).write.tryAcquire(), undefined);
      await second.renew();
      await second.release();
      const written = await writer.locks.lock(name).tryAcquire();
      assert.ok(written, 'free, and not granted');
      await written.release();
    },
  },
  {
    id: 'shared/a-writer-is-alone',
    clause: '§15.1',
    title: 'while a writer holds, neither a reader nor another writer enters',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const [writer, other] = [await context.client(), await context.client()];
      const held = await writer.locks.readWriteLock(name).write.acquire();
      const { read, write } = other.locks.readWriteLock(name);
      assert.equal(await read.tryAcquire(), undefined);
      assert.equal(await write.tryAcquire(), undefined);
      assert.equal(await writer.locks.readWriteLock(name).read.tryAcquire(), undefined);
      await held.release();
      const next = await read.tryAcquire();
      assert.ok(next, 'free, and not granted');
      assert.deepEqual(next.mode, SHARED);
      await next.release();
    },
  },
  {
    id: 'shared/never-beside-a-writer',
    clause: '§15.1',
    title: 'readers and writers of several clients come and go, and no writer holds beside another client',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const sections: CriticalSection[] = [];
      const contend = async (who: string): Promise<void> => {
        const { locks } = await context.client({ waitMs: 30_000 });
        const { read, write } = locks.readWriteLock(name);
        for (const round of roundsUpTo(10)) {
          const lease = await (context.random.between(0, 2) < 1 ? write : read).acquire();
          sections.push(
            await enter(lease, `${who} #${round}`, () => context.sleep(context.random.between(0, 3))),
          );
        }
      };
      await Promise.all(['a', 'b', 'c', 'd', 'e'].map(contend));
      assert.ok(sections.length >= 5 * LEAST_ROUNDS);
      assertCompatible(sections, context.seed);
    },
  },
  {
    id: 'shared/over-three-processes',
    clause: '§15.1',
    title: 'a writer of three processes never overlaps with another reader or writer',
    ...needs(processes, shared),
    async run(context) {
      const name = context.name();
      const children = await Promise.all([context.child(), context.child(), context.child()]);
      const sections = await Promise.all(
        children.map((child, index) =>
          child.contend(name, `process ${index}`, {
            rounds: 24,
            holdMs: 1,
            waitMs: 30_000,
            kinds: ['shared', 'exclusive', 'shared'],
          }),
        ),
      );
      assert.ok(sections.flat().length >= 3 * LEAST_ROUNDS);
      assertCompatible(sections.flat(), context.seed);
    },
  },
  {
    id: 'shared/every-share-has-its-own-end',
    clause: '§15.3',
    title: 'the share of a dead reader ends after its ttl, although others renew and come',
    ...needs(leaseTenure, shared),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const backend = await context.backend();
      const living = await (await context.client()).locks.readWriteLock(name).read.acquire({ ttlMs: 60_000 });
      const dead = await grab(backend, name, ttlMs, SHARED);
      const newcomer = await (await context.client()).locks
        .readWriteLock(name)
        .read.acquire({ ttlMs: 60_000 });
      await living.renew();
      await context.until(
        'the share of the dead reader has ended',
        async () => !(await holdersOf(backend, name)).includes(dead.request.acquisitionId),
        ttlMs + idleGapMs + slackMs * 5,
      );
      assert.equal((await holdersOf(backend, name)).length, 2);
      // The other readers still hold: every share has an end of its own.
      await living.renew();
      await newcomer.renew();
      const [renewalStatus] = await backend.renew([{ grant: dead, ttlMs }], openCall);
      assert.equal(renewalStatus?.status, 'lost', 'an expired share was renewed');
      await Promise.all([living.release(), newcomer.release()]);
      assert.equal((await holdersOf(backend, name)).length, 0);
    },
  },
  {
    id: 'shared/a-writer-follows-a-dead-reader',
    clause: '§15.3',
    title: 'a writer that waits for a dead reader enters after its ttl',
    ...needs(leaseTenure, shared),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      await grab(await context.backend(), name, ttlMs, SHARED);
      const elapsed = context.stopwatch();
      const lease = await (await context.client()).locks.lock(name).acquire({ waitMs: 20 * slackMs });
      const bound = ttlMs + idleGapMs + slackMs * 2;
      assert.ok(elapsed() < bound, `it took ${Math.round(elapsed())} ms, more than ${bound}`);
      await lease.release();
    },
  },
  {
    id: 'shared/a-killed-reader-frees-its-share',
    clause: '§15.3',
    title: 'of two readers in two processes one is killed; a writer enters when the other has released',
    ...needs(processes, shared),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const child = await context.child();
      // Nothing renews this share: only the store ends it.
      await child.acquire(name, { ttlMs, renewal: 'manual' }, 'shared');
      const reader = await (await context.client()).locks.readWriteLock(name).read.acquire();
      await child.kill();
      const writer = await startWaitingFor(context, (locks) => locks.lock(name), { waitMs: 60_000 });
      await context.sleep(ttlMs);
      assert.equal(writer.settled(), undefined, 'a writer entered beside a living reader');
      await reader.release();
      await (await granted(context, writer, ttlMs + idleGapMs + slackMs * 5)).release();
    },
  },
  {
    id: 'shared/a-stale-reader-changes-nothing',
    clause: '§15.3',
    title: 'an expired reader neither releases nor renews the present holders',
    ...needs(leaseTenure, shared),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs } = context.timing;
      const backend = await context.backend();
      const stale = await grab(backend, name, ttlMs, SHARED);
      const { locks } = await context.client();
      const writer = await locks.lock(name).acquire({ waitMs: 20 * slackMs });
      assert.equal(await backend.release(stale, openCall), 'not-held');
      const [renewalStatus] = await backend.renew([{ grant: stale, ttlMs }], openCall);
      assert.equal(renewalStatus?.status, 'lost');
      await backend.abandon(stale.request, openCall);
      assert.deepEqual(await holdersOf(backend, name), [writer.acquisitionId]);
      await writer.renew();
      await writer.release();
    },
  },
  {
    id: 'shared/repeated-attempt-is-the-same-share',
    clause: '§2.1',
    title: 'a repeated attempt of a reader gives its grant and token again, and one release ends it',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const request = requestOf(name, SHARED, 30_000);
      const first = await backend.attempt(request, false, openCall);
      const again = await backend.attempt(request, false, openCall);
      assert.equal(first.status, 'granted');
      assert.equal(again.status, 'granted');
      if (first.status !== 'granted' || again.status !== 'granted') return;
      assert.equal(again.grant.fencingToken, first.grant.fencingToken);
      assert.equal((await holdersOf(backend, name)).length, 1);
      await backend.release(again.grant, openCall);
      const writer = await grab(backend, name, 30_000, EXCLUSIVE);
      await backend.release(writer, openCall);
    },
  },
  {
    id: 'shared/tokens-rise-over-both-modes',
    clause: '§15.8',
    title: 'every reader and every writer has a token above the earlier ones',
    ...needs(shared, fencing),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const { read, write } = locks.readWriteLock(name);
      const tokens: (bigint | undefined)[] = [];
      const readers = [await read.acquire(), await read.acquire()];
      tokens.push(...readers.map((lease) => lease.fencingToken));
      await Promise.all(readers.map((lease) => lease.release()));
      for (const lock of [write, read, write]) {
        const lease = await lock.acquire();
        tokens.push(lease.fencingToken);
        await lease.release();
      }
      assertRising(tokens);
    },
  },
  {
    id: 'shared/inspect-shows-every-reader',
    clause: '§14.1',
    title: 'inspect shows all readers as holders, each with its mode',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const { read } = locks.readWriteLock(name);
      const leases = [await read.acquire(), await read.acquire(), await read.acquire()];
      const { holders } = await locks.inspect(name);
      assert.deepEqual(
        holders.map(({ acquisitionId }) => acquisitionId).sort(),
        leases.map(({ acquisitionId }) => acquisitionId).sort(),
      );
      for (const { mode } of holders) assert.deepEqual(mode, SHARED);
      await Promise.all(leases.map((lease) => lease.release()));
    },
  },
  {
    id: 'shared/forced-release-ends-all-or-one',
    clause: '§14.3',
    title: 'a forced release ends the given reader or all of them, and the waiting writer enters',
    ...needs(shared, forceRelease),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const { read } = locks.readWriteLock(name);
      const [one, two, three] = [await read.acquire(), await read.acquire(), await read.acquire()];
      const writer = await startWaitingFor(context, (others) => others.lock(name), { waitMs: 60_000 });
      const first = await locks.forceRelease(name, { acquisitionId: one.acquisitionId });
      assert.deepEqual(
        first.map(({ acquisitionId }) => acquisitionId),
        [one.acquisitionId],
      );
      assert.equal(writer.settled(), undefined);
      const rest = await locks.forceRelease(name);
      assert.deepEqual(
        rest.map(({ acquisitionId }) => acquisitionId).sort(),
        [two.acquisitionId, three.acquisitionId].sort(),
      );
      await (await writer.lease).release();
      for (const lease of [one, two, three]) watch(lease.release());
    },
  },
];
