import assert from 'node:assert/strict';
import type { Lease } from '../../src/lease.ts';
import { CallCounter } from '../around-calls.ts';
import type { CaseContext, Client } from '../case-context.ts';
import type { ConformanceCase } from '../case.ts';
import { cohorts, fencing, needs } from '../needs.ts';
import { startWaiting, watch } from '../waiter.ts';

/** A client, several of whose acquires wait for one resource. */
interface Cohort extends Client {
  readonly calls: CallCounter;
}

type Enter = (who: string, lease: Promise<Lease>, stay?: () => Promise<unknown>) => Promise<void>;

export const cohortCases: readonly ConformanceCase[] = [
  {
    id: 'cohort/newcomers-wait-for-another-lease',
    clause: '§18.2',
    title:
      'an acquire that came after the grant of a lease enters after those who waited at the store by then',
    ...needs(cohorts),
    async run(context) {
      const name = context.name();
      const [held, cohort] = [await take(context, name), await cohortOf(context)];
      const { order, enter, all } = entries();
      const both = join(context, cohort, name, 2);
      const leases = await both;
      let newcomer: Promise<void> | undefined;
      const first = enter('first', leases[0] as Promise<Lease>, async () => {
        const [lease] = await join(context, cohort, name, 1);
        newcomer = enter('newcomer', lease as Promise<Lease>);
      });
      void enter('second', leases[1] as Promise<Lease>);
      const other = await startWaiting(context, name, { waitMs: 60_000 });
      void enter('other', other.lease);
      await held.release();
      await first;
      await newcomer;
      await all();
      assert.ok(order.indexOf('other') < order.indexOf('newcomer'), order.join(', '));
      assert.ok(order.indexOf('first') < order.indexOf('second'), order.join(', '));
    },
  },
  {
    id: 'cohort/at-most-so-many-turns',
    clause: '§18.2',
    title: 'one lease serves at most the declared number of acquisitions, in the order of their calls',
    ...needs(cohorts),
    async run(context) {
      const name = context.name();
      const [held, cohort] = [await take(context, name), await cohortOf(context)];
      const { turns } = await boundOf(context);
      const { order, enter, all } = entries();
      const leases = await join(context, cohort, name, 2 * turns);
      for (const [index, lease] of leases.entries()) void enter(`${index}`, lease);
      const other = await startWaiting(context, name, { waitMs: 60_000 });
      void enter('other', other.lease);
      await held.release();
      await all();
      const before = order.indexOf('other');
      assert.ok(before <= turns, `${before} acquisitions entered by one lease: ${order.join(', ')}`);
      assert.deepEqual(
        order.filter((who) => who !== 'other'),
        leases.map((_, index) => `${index}`),
      );
    },
  },
  {
    id: 'cohort/no-turn-after-the-time',
    clause: '§18.3',
    title: 'a lease that was held for longer than it may be passed on goes back to the store',
    ...needs(cohorts),
    async run(context) {
      const name = context.name();
      const [held, cohort] = [await take(context, name), await cohortOf(context)];
      const { withinMs } = await boundOf(context);
      const { order, enter, all } = entries();
      const [first, second] = await join(context, cohort, name, 2);
      void enter('first', first as Promise<Lease>, () =>
        context.sleep(withinMs + context.timing.slackMs / 2),
      );
      void enter('second', second as Promise<Lease>);
      const other = await startWaiting(context, name, { waitMs: 60_000 });
      void enter('other', other.lease);
      await held.release();
      await all();
      assert.deepEqual(order, ['first', 'other', 'second']);
    },
  },
  {
    id: 'cohort/tokens-rise-with-every-turn',
    clause: '§18.5',
    title: 'the tokens of all turns of two clients rise in the order in which they entered',
    ...needs(cohorts, fencing),
    async run(context) {
      const name = context.name();
      const held = await take(context, name);
      const { enter, all, tokens } = entries();
      tokens.push(held.fencingToken ?? 0n);
      const rounds = 3;
      const clients = [await cohortOf(context), await cohortOf(context)];
      for (const [index, client] of clients.entries()) {
        for (const lease of await join(context, client, name, 4)) {
          const again = async (): Promise<void> => {
            for (let round = 0; round < rounds; round += 1)
              await enter(`client ${index}`, client.locks.lock(name).acquire({ waitMs: 60_000 }));
          };
          const taken = enter(`client ${index}`, lease).then(again);
          watch(taken);
        }
      }
      await held.release();
      await all();
      const sorted = tokens.toSorted((a, b) => (a < b ? -1 : 1));
      assert.deepEqual(tokens, sorted);
      assert.equal(new Set(tokens).size, tokens.length, 'a token was used twice');
    },
  },
];

function take(context: CaseContext, name: string): Promise<Lease> {
  return context.client().then(({ locks }) => locks.lock(name).acquire({ ttlMs: 60_000 }));
}

async function cohortOf(context: CaseContext): Promise<Cohort> {
  const calls = new CallCounter();
  return { ...(await context.client({ wrap: calls.wrap, ttlMs: 60_000 })), calls };
}

async function boundOf(context: CaseContext): Promise<{ readonly turns: number; readonly withinMs: number }> {
  const { cohort } = (await context.backend()).capabilities;
  assert.ok(cohort, 'the order is declared as cohort, and no bound of it');
  return cohort;
}

/** Starts acquires of one client, and resolves when their first attempts were answered. */
async function join(
  context: CaseContext,
  { locks, calls }: Cohort,
  name: string,
  count: number,
): Promise<Promise<Lease>[]> {
  const before = calls.answersTo('attempt');
  const leases = Array.from({ length: count }, () => locks.lock(name).acquire({ waitMs: 60_000 }));
  for (const lease of leases) watch(lease);
  await context.until('the acquires wait', () => calls.answersTo('attempt') >= before + count);
  return leases;
}

/** Writes down who entered, and with which token. */
function entries(): {
  readonly order: string[];
  readonly tokens: bigint[];
  readonly enter: Enter;
  all(): Promise<void>;
} {
  const order: string[] = [];
  const tokens: bigint[] = [];
  const open = new Set<Promise<void>>();
  const enter: Enter = (who, lease, stay) => {
    const entered = lease.then(async (granted) => {
      order.push(who);
      tokens.push(granted.fencingToken ?? 0n);
      await stay?.();
      await granted.release();
    });
    watch(entered);
    open.add(entered);
    return entered;
  };
  const all = async (): Promise<void> => {
    for (const entered of open) await entered;
    // Who has left may enter again: a set is walked with what is added meanwhile, but for the last one.
    await new Promise((resolve) => setImmediate(resolve));
    for (const entered of open) await entered;
  };
  return { order, tokens, enter, all };
}
