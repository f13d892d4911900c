// One file, a list: the scenarios are read beside each other, and share their steps.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Lease, LockError, type LockManager } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import type { RedisProxy } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import type { FaultLab, FaultyServer } from './fault-lab.ts';
import type { FaultStore, StoreTraits } from './fault-store.ts';
import { failure, figure, grantOf, later, lossOf, timedFailure, untilWaiting, watched } from './observe.ts';

/** Enough for every client to find a server that is back. */
const PATIENCE_MS = 30_000;
/** Longer than any store takes to notice that its server is silent. */
const SILENT_WAIT_MS = 7_000;
const SHORT_WAIT_MS = 700;
/** The longest time that `close()` waits for a silent store (docs/spec.md §12.7). */
const CLOSE_MS = 3_000;
/** Longer than core repeats the abandon of a waiter with a brief ttl. */
const LONGER_THAN_ABANDON_MS = 4_000;

interface ScenarioContext<Options extends object> {
  readonly lab: FaultLab<Options>;
  readonly store: FaultStore<Options>;
  readonly server: FaultyServer;
  /** Locks of one more client, whose first call is over: schemas are made, scripts are loaded. */
  locks(at: Address, options: Options): Promise<LockManager>;
}

interface Scenario {
  readonly title: string;
  /** Absent: every store. */
  readonly applies?: (store: StoreTraits) => boolean;
  run<Options extends object>(context: ScenarioContext<Options>): Promise<void>;
}

const SILENCES = {
  cut: (proxy: RedisProxy) => {
    proxy.refuse();
    proxy.cut();
  },
  blackholed: (proxy: RedisProxy) => proxy.blackhole(),
} as const;

const STOPS = {
  killed: {
    stop: (server: FaultyServer) => server.kill(),
    back: (server: FaultyServer) => server.restart(),
  },
  'standing still': {
    stop: (server: FaultyServer) => server.pause(),
    back: async (server: FaultyServer) => server.resume(),
  },
} as const;

function keysOf<T extends object>(of: T): (keyof T)[] {
  return Object.keys(of) as (keyof T)[];
}

/** Asserts that `next` came after `before`, where the store gives tokens. */
function expectHigher(next: bigint | undefined, before: bigint | undefined): void {
  if (before !== undefined) expect(next).toBeGreaterThan(before);
}

function endOfSilentWait({ noticesSilence }: StoreTraits): RegExp {
  return noticesSilence ? /^LOCK_BACKEND$/ : /^LOCK_(BACKEND|TIMEOUT)$/;
}

const scenarios: readonly Scenario[] = [
  {
    title: 'a server killed and restarted: the lease goes on, waiters are served in order, tokens rise',
    applies: ({ keepsHolds }) => keepsHolds,
    async run({ store, server, locks }) {
      const holder = await locks(server, store.lasting);
      const waiters = await Promise.all([0, 1].map(() => locks(server, store.lasting)));
      const lease = await holder.lock('a').acquire();
      const order: number[] = [];
      const entered: Promise<bigint | undefined>[] = [];
      for (const [index, waiter] of waiters.entries()) {
        const enter = ({ fencingToken }: Lease) => {
          order.push(index);
          return fencingToken;
        };
        entered.push(later(waiter.lock('a').run(enter, { waitMs: PATIENCE_MS })));
        await untilWaiting(holder, 'a', index + 1);
      }
      await server.restart();
      await untilWaiting(holder, 'a', waiters.length);
      if (holder.capabilities.tenure === 'lease') await lease.renew();
      lease.assertValid();
      expect(order).toEqual([]);
      const releasedAt = performance.now();
      await lease.release();
      const tokens = await Promise.all(entered);
      figure(`${store.name}, two hand-offs after a restart of the server`, performance.now() - releasedAt);
      expect(order).toEqual([0, 1]);
      expectHigher(tokens[0], lease.fencingToken);
      expectHigher(tokens[1], tokens[0]);
    },
  },
  {
    title:
      'a server killed and restarted without its holds: the loss is reported, waiters get in one at a time',
    applies: ({ keepsHolds }) => !keepsHolds,
    async run({ store, server, locks }) {
      const holder = await locks(server, store.brief);
      const waiters = await Promise.all([0, 1].map(() => locks(server, store.lasting)));
      const lease = await holder.lock('a').acquire();
      const lost = lossOf(lease);
      const waits = waiters.map((waiter) => watched(waiter.lock('a').acquire({ waitMs: PATIENCE_MS })));
      await untilWaiting(holder, 'a', 2);
      const startedAt = performance.now();
      await server.restart();
      const { reason, at } = await lost;
      expect(reason).toMatch(/^(force-released|taken-over|session-lost)$/);
      figure(`${store.name}, restart: loss reported after`, at - startedAt);
      expect((await failure(lease.release())).code).toBe('LOCK_LOST');
      const next = await Promise.race(waits.map(({ work }) => work));
      figure(`${store.name}, restart: next waiter in after`, performance.now() - startedAt);
      await untilWaiting(holder, 'a', 1);
      expect(waits.filter(({ settled }) => settled)).toHaveLength(1);
      expectHigher(next.fencingToken, lease.fencingToken);
      await next.release();
      const leases = await Promise.all(waits.map(({ work }) => work));
      expect(new Set(leases.map(({ acquisitionId }) => acquisitionId)).size).toBe(2);
      const last = leases.find((each) => each !== next);
      expectHigher(last?.fencingToken, next.fencingToken);
      await last?.release();
    },
  },
  ...keysOf(STOPS).map(
    (how): Scenario => ({
      title: `a server ${how} for longer than a hold lasts: the loss is reported before anyone else is in, waits end in time`,
      async run({ store, server, locks }) {
        const [holder, waiter] = [await locks(server, store.brief), await locks(server, store.brief)];
        const lease = await holder.lock('a').acquire();
        const lost = lossOf(lease);
        const entered = grantOf(waiter.lock('a').acquire({ waitMs: PATIENCE_MS }));
        const startedAt = performance.now();
        const impatient = later(timedFailure(waiter.lock('a').acquire({ waitMs: SILENT_WAIT_MS })));
        await untilWaiting(holder, 'a', 2);
        const stoppedAt = performance.now();
        await STOPS[how].stop(server);
        const { reason, at } = await lost;
        expect(reason).toBe(store.lossReason);
        expect(at - stoppedAt).toBeLessThan(store.reportedMs);
        expect((await failure(lease.release())).code).toBe('LOCK_LOST');
        const askedAt = performance.now();
        const refused = await failure(waiter.lock('b').acquire({ waitMs: SHORT_WAIT_MS }));
        expect(refused.code).toBe('LOCK_BACKEND');
        expect(performance.now() - askedAt).toBeLessThan(SHORT_WAIT_MS + store.slackMs);
        const gaveUp = await impatient;
        expect(gaveUp.code).toMatch(endOfSilentWait(store));
        expect(gaveUp.at - startedAt).toBeLessThan(SILENT_WAIT_MS + store.slackMs);
        await sleep(Math.max(0, stoppedAt + store.freedMs - performance.now()));
        await STOPS[how].back(server);
        const backAt = performance.now();
        const next = await entered;
        figure(`${store.name}, server ${how} for long: next one in after it is back`, next.at - backAt);
        expect(next.at).toBeGreaterThan(at);
        next.lease.assertValid();
        expectHigher(next.lease.fencingToken, lease.fencingToken);
        await next.lease.release();
        // What reached the server after its call had given up does not stay.
        for (const name of ['a', 'b'])
          await (await holder.lock(name).acquire({ waitMs: PATIENCE_MS / 2 })).release();
      },
    }),
  ),
  ...keysOf(SILENCES).map(
    (how): Scenario => ({
      title: `a holder whose connections are ${how}: the loss is reported before anyone else is in`,
      // A session that ends with its connection ends on both sides at the same moment.
      applies: ({ endsWithConnection }) => how === 'blackholed' || !endsWithConnection,
      async run({ lab, store, server, locks }) {
        const proxy = await lab.proxy(server);
        const [far, near] = [await locks(proxy, store.brief), await locks(server, store.brief)];
        const lease = await far.lock('a').acquire();
        const lost = lossOf(lease);
        const entered = grantOf(near.lock('a').acquire({ waitMs: PATIENCE_MS }));
        await untilWaiting(near, 'a');
        const startedAt = performance.now();
        SILENCES[how](proxy);
        const { reason, at } = await lost;
        expect(reason).toBe(store.lossReason);
        figure(`${store.name}, holder ${how}: loss reported after`, at - startedAt);
        expect(at - startedAt).toBeLessThan(store.reportedMs);
        expect((await failure(lease.release())).code).toBe('LOCK_LOST');
        const next = await entered;
        expect(next.at).toBeGreaterThan(at);
        figure(`${store.name}, holder ${how}: next one in after`, next.at - startedAt);
        expect(next.at - startedAt).toBeLessThan(store.freedMs);
        expectHigher(next.lease.fencingToken, lease.fencingToken);
        await next.lease.release();
        await proxy.heal();
        const again = await far.lock('a').acquire({ waitMs: PATIENCE_MS / 2 });
        expectHigher(again.fencingToken, next.lease.fencingToken);
        await again.release();
      },
    }),
  ),
  ...keysOf(SILENCES).map(
    (how): Scenario => ({
      title: `a waiter whose connections are ${how} fails in time, is passed over, and leaves nothing behind`,
      async run({ lab, store, server, locks }) {
        const proxy = await lab.proxy(server);
        const [far, near] = [await locks(proxy, store.brief), await locks(server, store.lasting)];
        const behind = await locks(server, store.lasting);
        const lease = await near.lock('a').acquire();
        const startedAt = performance.now();
        const swallowed = later(timedFailure(far.lock('a').acquire({ waitMs: SILENT_WAIT_MS })));
        await untilWaiting(near, 'a');
        const entered = grantOf(behind.lock('a').acquire({ waitMs: PATIENCE_MS }));
        await untilWaiting(near, 'a', 2);
        SILENCES[how](proxy);
        await lease.release();
        const releasedAt = performance.now();
        const next = await entered;
        figure(`${store.name}, first waiter ${how}: next one in after`, next.at - releasedAt);
        expect(next.at - releasedAt).toBeLessThan(store.passedOverMs);
        const gaveUp = await swallowed;
        expect(gaveUp.code).toMatch(endOfSilentWait(store));
        expect(gaveUp.at - startedAt).toBeLessThan(SILENT_WAIT_MS + store.slackMs);
        next.lease.assertValid();
        await proxy.heal();
        await next.lease.release();
        const back = await far.lock('a').acquire({ waitMs: PATIENCE_MS / 2 });
        expectHigher(back.fencingToken, next.lease.fencingToken);
        await back.release();
        expect((await near.inspect('a')).waiters).toEqual([]);
      },
    }),
  ),
  {
    title: 'a waiter that gives up while the server is away does not block those behind it',
    applies: ({ keepsHolds }) => keepsHolds,
    async run({ store, server, locks }) {
      const [holder, waiter] = [await locks(server, store.lasting), await locks(server, store.brief)];
      const behind = await locks(server, store.lasting);
      const [lease, other] = [await holder.lock('a').acquire(), await holder.lock('b').acquire()];
      const caller = new AbortController();
      const { signal } = caller;
      const givesUp = later(failure(waiter.lock('a').acquire({ waitMs: PATIENCE_MS, signal })));
      // A waiter that goes on keeps the session of its client, or its heartbeat, alive.
      const goesOn = later(waiter.lock('b').acquire({ waitMs: PATIENCE_MS }));
      await untilWaiting(holder, 'a');
      await untilWaiting(holder, 'b');
      const entered = grantOf(behind.lock('a').acquire({ waitMs: PATIENCE_MS }));
      await untilWaiting(holder, 'a', 2);
      await server.kill();
      caller.abort(new LockError('LOCK_TIMEOUT', 'the caller gave up'));
      await givesUp;
      await sleep(LONGER_THAN_ABANDON_MS);
      await server.restart();
      await lease.release();
      const releasedAt = performance.now();
      const next = await entered;
      figure(`${store.name}, first waiter gave up without a server: next one in after`, next.at - releasedAt);
      expect(next.at - releasedAt).toBeLessThan(store.passedOverMs);
      await next.lease.release();
      await other.release();
      await (await goesOn).release();
    },
  },
  ...keysOf(SILENCES).map(
    (how): Scenario => ({
      title: `a waiter whose connections are ${how} for a while gets the lock that was released meanwhile`,
      async run({ lab, store, server, locks }) {
        const proxy = await lab.proxy(server);
        const [far, near] = [await locks(proxy, store.lasting), await locks(server, store.lasting)];
        const lease = await near.lock('a').acquire();
        const entered = grantOf(far.lock('a').acquire({ waitMs: PATIENCE_MS }));
        await untilWaiting(near, 'a');
        SILENCES[how](proxy);
        await lease.release();
        await sleep(2_500);
        await proxy.heal();
        const healedAt = performance.now();
        const next = await entered;
        figure(`${store.name}, waiter ${how} for 2.5 s: in after the end of it`, next.at - healedAt);
        expect(next.at - healedAt).toBeLessThan(10_000);
        next.lease.assertValid();
        await next.lease.release();
      },
    }),
  ),
  {
    title:
      'connections cut under holder and waiter, again and again: the lease goes on, the waiter gets its turn',
    applies: ({ endsWithConnection }) => !endsWithConnection,
    async run({ lab, store, server, locks }) {
      const proxy = await lab.proxy(server);
      // A lease is to be renewed on other connections, a session to be resumed before it ends.
      const isLease = store.lossReason === 'unconfirmed';
      const options = isLease ? store.brief : store.lasting;
      const [holder, waiter] = [await locks(proxy, options), await locks(proxy, options)];
      const near = await locks(server, store.lasting);
      const lease = await holder.lock('a').acquire();
      const entered = later(waiter.lock('a').acquire({ waitMs: PATIENCE_MS }));
      await untilWaiting(near, 'a');
      const renewedBy = performance.now() + lease.validForMs;
      for (let round = 0; round < 3; round += 1) {
        proxy.cut();
        await sleep(300);
      }
      if (isLease) await sleep(renewedBy + 200 - performance.now());
      lease.assertValid();
      proxy.cut();
      await lease.release();
      const next = await entered;
      expectHigher(next.fencingToken, lease.fencingToken);
      await next.release();
      // A single attempt finds a closed connection, and takes another.
      proxy.cut();
      const last = await holder.lock('b').acquire({ waitMs: PATIENCE_MS });
      await last.release();
    },
  },
  {
    title: 'the lock of a killed process is free when its hold is over',
    async run({ lab, store, server, locks }) {
      const near = await locks(server, store.brief);
      const holder = await lab.worker(server, store.brief);
      await holder.call.acquire('a');
      const entered = grantOf(near.lock('a').acquire({ waitMs: PATIENCE_MS }));
      await untilWaiting(near, 'a');
      const killedAt = performance.now();
      await holder.kill();
      const next = await entered;
      figure(`${store.name}, holder killed: next one in after`, next.at - killedAt);
      expect(next.at - killedAt).toBeLessThan(store.freedMs);
      await next.lease.release();
    },
  },
  ...(['killed', 'frozen'] as const).map(
    (how): Scenario => ({
      title: `a process that was ${how} while it waited is passed over; a frozen one does not believe its late turn`,
      async run({ lab, store, server, locks }) {
        const [holder, behind] = [await locks(server, store.lasting), await locks(server, store.lasting)];
        const worker = await lab.worker(server, store.brief);
        const lease = await holder.lock('a').acquire();
        const missed = watched(later(worker.call.acquire('a', { waitMs: 2 * PATIENCE_MS })));
        await untilWaiting(holder, 'a');
        const entered = grantOf(behind.lock('a').acquire({ waitMs: PATIENCE_MS }));
        await untilWaiting(holder, 'a', 2);
        if (how === 'killed') await worker.kill();
        else worker.freeze();
        await lease.release();
        const releasedAt = performance.now();
        const next = await entered;
        figure(`${store.name}, next in queue ${how}: the one behind it in after`, next.at - releasedAt);
        expect(next.at - releasedAt).toBeLessThan(store.passedOverMs);
        if (how === 'frozen') {
          worker.thaw();
          await untilWaiting(holder, 'a');
          expect(missed.settled).toBe(false);
        }
        next.lease.assertValid();
        await next.lease.release();
        if (how === 'killed') return;
        const { token } = await missed.work;
        if (next.lease.fencingToken !== undefined) expectHigher(BigInt(token), next.lease.fencingToken);
      },
    }),
  ),
  {
    title:
      'a server that stands still: close() with two leases and a waiter settles within 3 s, and its process can end',
    async run({ lab, store, server, locks }) {
      const other = await locks(server, store.lasting);
      await other.lock('held').acquire();
      const worker = await lab.worker(server, store.lasting);
      for (const name of ['a', 'b']) await worker.call.acquire(name);
      // What was released may be left to tidy up.
      await worker.call.release((await worker.call.acquire('c')).id);
      const refused = worker.call.acquire('held', { waitMs: PATIENCE_MS }).catch((error: unknown) => error);
      await untilWaiting(other, 'held');
      await server.pause();
      const ended = once(worker.child, 'exit');
      const { outcome, tookMs } = await worker.call.close();
      figure(`${store.name}, close() beside a server that stands still`, tookMs);
      expect(outcome).toMatch(/^(closed|LOCK_BACKEND)$/);
      expect(tookMs).toBeLessThan(CLOSE_MS + store.slackMs / 2);
      expect(await refused).toMatchObject({ code: 'LOCK_CLOSED' });
      const closedAt = performance.now();
      await ended;
      figure(`${store.name}, its process ended after`, performance.now() - closedAt);
      server.resume();
    },
  },
  {
    title:
      'a pool of one connection serves twenty holds for longer than their ttl, and twenty waiters in order',
    applies: (store) => 'poolOfOne' in store,
    async run({ store, server, locks }) {
      const one = await locks(server, store.poolOfOne ?? store.brief);
      const names = Array.from({ length: 20 }, (_, index) => `lock ${index}`);
      const leases = await Promise.all(names.map((name) => one.lock(name).acquire()));
      const order: number[] = [];
      const waits: Promise<unknown>[] = [];
      for (const index of names.keys()) {
        waits.push(later(one.lock('lock 0').run(() => order.push(index), { waitMs: PATIENCE_MS })));
      }
      await untilWaiting(one, 'lock 0', names.length);
      await sleep(Math.max(...leases.map(({ validForMs }) => validForMs)) + 300);
      for (const lease of leases) lease.assertValid();
      await Promise.all(leases.map((lease) => lease.release()));
      await Promise.all(waits);
      expect(order).toEqual([...names.keys()]);
    },
  },
];

/** Registers the scenarios that apply to a store. */
export function testFaultScenarios<Options extends object>(store: FaultStore<Options>): void {
  describe.concurrent(`faults of every store, on ${store.name}`, { timeout: 60_000 }, () => {
    for (const { title, applies, run } of scenarios) {
      if (applies?.(store) === false) continue;
      it(title, async () => {
        await using lab = store.openLab();
        const server = await lab.server();
        const locks = async (at: Address, options: Options): Promise<LockManager> => {
          const opened = await lab.locks(at, options);
          await opened.lock('warm').run(() => undefined, { waitMs: PATIENCE_MS });
          return opened;
        };
        await run({ lab, store, server, locks });
      });
    }
  });
}
