import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { grab, holdersOf, openCall } from '../raw.ts';
import type { Client, CaseContext } from '../case-context.ts';
import { watch } from '../waiter.ts';

const HOLD_MS = 60_000;
/** The iterations of the event loop between the two calls of a pair: some second calls meet the first one on its way. */
const TURNS = [0, 1, 2, 3, 4, 5, 6];

/** The call that is sent together with a release of the same grant. */
const others = {
  release: (backend: LockBackend, grant: Grant) => backend.release(grant, openCall),
  abandon: (backend: LockBackend, { request }: Grant) => backend.abandon(request, openCall),
  renew: (backend: LockBackend, grant: Grant) => backend.renew([{ grant, ttlMs: HOLD_MS }], openCall),
};

type Call = () => Promise<unknown>;

/** Cases of overlapping calls for one grant: none of them may act on a state that is past (docs/spec.md §2.8, §3.1). */
export const ownershipRaceCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/races-of-one-grant',
    clause: '§2.8',
    title:
      'a release sent together with another release, an abandon or a renewal of its grant leaves the next holder alone',
    async run(context) {
      const [a, b] = [await context.backend(), await context.backend()];
      // A waiter in the releasing process may be served by it, a waiter elsewhere by the store.
      const waiting = [await queueing(context), await queueing(context)];
      const pairs = Object.values(others).flatMap((other) =>
        TURNS.flatMap((turns) => [true, false].map((otherFirst) => ({ other, turns, otherFirst }))),
      );
      await Promise.all(
        pairs.map(async ({ other, turns, otherFirst }) => {
          const near = context.random.next() < 0.5;
          const queue = waiting[near ? 0 : 1] as Queueing;
          const releasing = near ? queue.backend : a;
          const name = context.name();
          const grant = await grab(releasing, name, HOLD_MS);
          const waiter = await queue.waitFor(name);
          const release = (): Promise<unknown> => releasing.release(grant, openCall);
          const another = (): Promise<unknown> => other(b, grant);
          await (otherFirst ? together(another, release, turns) : together(release, another, turns));
          await context.until(
            `the waiter of ${name} is served after ${other.name} and release`,
            waiter.settled,
            context.timing.idleGapMs + 10 * context.timing.slackMs,
          );
          const lease = await waiter.lease;
          // Core would repeat a lost attempt unnoticed; a renewal of an ended hold shows the loss.
          await lease.renew();
          // Where the store asks the holders who they are, the answer of a busy holder may come too late.
          await context.until('inspect shows the new holder', async () => {
            const [holder, ...more] = await holdersOf(b, name);
            assert.deepEqual(more, []);
            return holder === lease.acquisitionId;
          });
          await lease.release();
          assert.deepEqual(await holdersOf(b, name), []);
          const next = await grab(b, name, HOLD_MS);
          await b.abandon(next.request, openCall);
        }),
      );
    },
  },
];

/** The second call comes some iterations of the event loop after the first; neither waits for the other's answer. */
async function together(first: Call, second: Call, turns: number): Promise<void> {
  const delayed = async (): Promise<unknown> => {
    for (let count = 0; count < turns; count += 1) await turn();
    return second();
  };
  await Promise.all([first(), delayed()]);
}

/** A client that waits for many names at a time. */
interface Queueing extends Client {
  /** Resolves when the acquire was found contended: it stands in the queue, or polls. */
  waitFor(name: string): Promise<Waiting>;
}

interface Waiting {
  readonly lease: Promise<Lease>;
  readonly settled: () => boolean;
}

async function queueing(context: CaseContext): Promise<Queueing> {
  const answers = new Map<string, number>();
  const answersTo = (name: string): number => answers.get(name) ?? 0;
  const client = await context.client({
    ttlMs: HOLD_MS,
    waitMs: HOLD_MS,
    wrap: (backend) =>
      delegate(backend, {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          answers.set(request.resource, answersTo(request.resource) + 1);
          return attempt;
        },
      }),
  });
  const waitFor = async (name: string): Promise<Waiting> => {
    const before = answersTo(name);
    const lease = client.locks.lock(name).acquire();
    const watched = watch(lease);
    await context.until('the first attempt of a waiter is answered', () => answersTo(name) > before);
    return { lease, settled: () => watched.settled };
  };
  return { ...client, waitFor };
}
