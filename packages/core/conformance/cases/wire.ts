import assert from 'node:assert/strict';
import { isLockError } from '../../src/errors.ts';
import { behindProxies, type ProxiedClient } from '../behind-proxies.ts';
import { type ConformanceCase, without } from '../case.ts';
import { assertExclusive, enter, type CriticalSection } from '../critical-section.ts';
import { leaseTenure, needs, wire } from '../needs.ts';
import type { Direction } from '../proxy/network-faults.ts';
import { EXCLUSIVE, holdersOf, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { watch } from '../waiter.ts';

/** Longer than the answer time-outs of adapters and their clients. */
const SILENCE_MS = 6_000;
const ROUNDS = 8;

/** Cases of faults below an adapter, on the wire between its client and the server. */
export const wireCases: readonly ConformanceCase[] = [
  {
    id: 'faults/silent-wire-grants-nothing',
    clause: '§13.1',
    title:
      'an attempt whose request or reply is lost on the wire is never reported as granted, however long the silence lasts',
    ...needs(wire),
    async run(context) {
      const { locks } = await context.client({ ttlMs: context.inSteps(60_000) });
      const held = context.name('held');
      const holder = await locks.lock(held).acquire();
      await Promise.all([
        hearsNothing(context, held, 'toClient'),
        hearsNothing(context, context.name('free'), 'toClient'),
        hearsNothing(context, context.name('never sent'), undefined),
      ]);
      holder.assertValid();
      await holder.release();
    },
  },
  {
    id: 'idempotence/cut-replies-count-once',
    clause: '§2.4',
    title:
      'an acquire, a renewal and a release whose connections end before the reply, and which are sent again, take effect once',
    ...needs(wire, leaseTenure),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const ttlMs = context.inSteps(2 * context.livingTtlMs + 2_000);
      const direct = await context.backend();
      const { locks, proxies } = await behindProxies(context);
      const cut = (): void => {
        for (const proxy of proxies) proxy.cutAtNextReply();
      };
      cut();
      const lease = await locks
        .lock(name)
        .acquire({ ttlMs: context.inSteps(600_000), waitMs: 20 * slackMs + idleGapMs });
      assert.deepEqual(await holdersOf(direct, name), [lease.acquisitionId]);
      cut();
      await lease.renew().catch(ignoringNoAnswer);
      lease.assertValid();
      assert.deepEqual(await holdersOf(direct, name), [lease.acquisitionId], 'the renewal ended the hold');
      await lease.renew(ttlMs);
      cut();
      await lease.release().catch(ignoringNoAnswer);
      // A hold whose release got no answer ends by its ttl.
      await context.until(
        'the resource is free',
        async () => (await holdersOf(direct, name)).length === 0,
        ttlMs + idleGapMs + 3 * slackMs,
      );
      const next = await (await context.client()).locks.lock(name).acquire();
      await context.sleep(slackMs);
      assert.deepEqual(
        await holdersOf(direct, name),
        [next.acquisitionId],
        'a repeated release ended the next hold',
      );
      await next.release();
    },
  },
  {
    id: 'idempotence/repeated-replies-count-once',
    clause: '§2.1',
    title: 'a reply that comes twice is not taken for the answer to another request',
    missing: (capabilities, harness) =>
      wire.missing(capabilities, harness) ??
      (harness.faults?.wire?.replyLength === undefined
        ? without('the protocol matches replies by their order, and TCP repeats none')
        : undefined),
    async refused(context) {
      if (context.harness.faults?.wire === undefined) return wire.refused(context);
      // The other cases about the wire prove nothing if the client does not use the proxies.
      const { proxies } = await behindProxies(context);
      const sent = proxies.flatMap((proxy) => proxy.connections()).map(({ bytesToServer }) => bytesToServer);
      assert.ok(Math.max(0, ...sent) > 0, 'the backend of faults.wire does not go through the proxies');
    },
    async run(context) {
      const name = context.name();
      const repeats = context.harness.faults?.wire?.replyLength;
      const clients = [
        await behindProxies(context, repeats),
        await behindProxies(context, repeats),
        await context.client(),
      ];
      const history: CriticalSection[] = [];
      await Promise.all(
        [...clients, ...clients].map(async ({ locks }, who) => {
          for (let round = 0; round < ROUNDS; round += 1) {
            const lease = await locks.lock(name).acquire({ waitMs: 40 * context.timing.slackMs });
            const section = await enter(lease, `client ${who} #${round}`, async () => {
              await new Promise(setImmediate);
              await locks.lock(context.name()).run(async () => {});
            });
            history.push(section);
          }
        }),
      );
      assertExclusive(history, context.seed);
    },
  },
];

/** Attempts over a silent wire. `lost` is the direction in which nothing arrives; both directions where it is `undefined`. */
async function hearsNothing(context: CaseContext, name: string, lost: Direction | undefined): Promise<void> {
  const { backend, proxies, heal }: ProxiedClient = await behindProxies(context);
  for (const proxy of proxies) proxy.blackhole(lost === undefined ? {} : { direction: lost });
  const request = requestOf(name, EXCLUSIVE, context.livingTtlMs);
  const deadline = openCall.now() + SILENCE_MS;
  const call = { ...openCall, deadline, signal: AbortSignal.timeout(SILENCE_MS) };
  const asking = backend.attempt(request, true, call).then(
    ({ status }) => status,
    () => 'failed',
  );
  const reported = await Promise.race([asking, context.sleep(SILENCE_MS).then(() => 'no answer')]);
  if (reported === 'granted') {
    const why = lost === undefined ? 'its request was lost on the wire' : 'its reply was lost on the wire';
    throw new SafetyViolation(`An attempt was reported as granted, and ${why}.`);
  }
  watch(asking);
  await heal();
  const { slackMs, idleGapMs } = context.timing;
  await context.until(
    'the id can be abandoned once the wire works again',
    () =>
      backend.abandon(request, openCall).then(
        () => true,
        () => false,
      ),
    20 * slackMs + idleGapMs,
  );
}

function ignoringNoAnswer(error: unknown): void {
  if (!isLockError(error, 'LOCK_BACKEND')) throw error;
}
