import assert from 'node:assert/strict';
import type { LockManager } from '../../src/create-locks.ts';
import { isLockError } from '../../src/errors.ts';
import { adopt, transfer, type TransferTicket } from '../../src/transfer/index.ts';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import { assertRising } from '../critical-section.ts';
import { delegate, NoReply } from '../delegate.ts';
import { fencing, fifo, forceRelease, transfer as feature, needs, steal } from '../needs.ts';
import { holdersOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import { startWaiting } from '../waiter.ts';

const HOLD_MS = 60_000;
const ADOPTERS = 6;

/** A lease of one process that goes on in another. */
export const transferCases: readonly ConformanceCase[] = [
  {
    id: 'transfer/goes-on-elsewhere',
    clause: '§19.2',
    title: 'another client adopts a lease ahead of the queue; the former handle is over, and ends nothing',
    ...needs(feature, fifo),
    async run(context) {
      const name = context.name();
      const [former, next] = [await context.client(), await context.client()];
      // What the next client knows of the lock is stale when it adopts.
      await next.locks.lock(name).run(() => undefined);
      const lease = await former.locks.lock(name).acquire({ ttlMs: HOLD_MS });
      const waiter = await startWaiting(context, name, { waitMs: HOLD_MS });
      const ticket = await sent(lease);
      const onItsWay = await next.locks.inspect(name);
      const ids = onItsWay.holders.map(({ acquisitionId }) => acquisitionId);
      assert.deepEqual(ids, [lease.acquisitionId], 'the lock was free meanwhile');
      const adopted = await adopt(next.locks, ticket);
      assert.deepEqual(await holdersOf(next.backend, name), [adopted.acquisitionId]);
      await assert.rejects(lease.renew(), (error) => isLockError(error, 'LOCK_NOT_HELD'));
      assert.equal(lease.signal.aborted, false);
      await lease.release();
      await former.locks.close();
      await adopted.renew();
      assert.deepEqual(await holdersOf(next.backend, name), [adopted.acquisitionId]);
      assert.equal(waiter.settled(), undefined, 'a waiter entered beside the adopted lease');
      await adopted.release();
      await (await waiter.lease).release();
    },
  },
  {
    id: 'transfer/tokens-rise',
    clause: '§19.2',
    title: 'the adopted lease has a higher token than the one that was transferred',
    ...needs(feature, fencing),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const lease = await locks.lock(name).acquire({ ttlMs: HOLD_MS });
      const tokens = [lease.fencingToken];
      let ticket = await sent(lease);
      for (const _ of [1, 2]) {
        const adopted = await adopt((await context.client()).locks, ticket);
        tokens.push(adopted.fencingToken);
        ticket = await sent(adopted);
      }
      assertRising(tokens);
      await (await adopt(locks, ticket)).release();
    },
  },
  {
    id: 'transfer/is-adopted-once',
    clause: '§19.2',
    title: 'of many clients that adopt one lease at once, and of those that come later, one holds',
    ...needs(feature),
    async run(context) {
      const name = context.name();
      const { locks, backend } = await context.client();
      const ticket = await sent(await locks.lock(name).acquire({ ttlMs: HOLD_MS }));
      const clients = await Promise.all(Array.from({ length: ADOPTERS }, () => context.client()));
      const all = await Promise.allSettled(clients.map((client) => adopt(client.locks, ticket)));
      const adopted = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const [lease] = adopted;
      if (lease === undefined || adopted.length > 1)
        throw new SafetyViolation(`${adopted.length} of ${ADOPTERS} adopted one lease`);
      for (const one of all) if (one.status === 'rejected') assertNotHeld(one.reason);
      await refusesToAdopt(locks, ticket);
      assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId]);
      await lease.renew();
      await lease.release();
      await refusesToAdopt(locks, ticket);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'transfer/needs-its-ticket',
    clause: '§19.2',
    title: 'what anybody can see of a lease, held or on its way, adopts nothing',
    ...needs(feature),
    async run(context) {
      const name = context.name();
      const { locks, backend } = await context.client();
      const stranger = await context.client();
      const lease = await locks.lock(name).acquire({ ttlMs: HOLD_MS });
      // A ticket of the right form, for a lease that was not transferred.
      const other = await sent(await locks.lock(context.name('other')).acquire({ ttlMs: HOLD_MS }));
      const secret = other.acquisitionId.slice(lease.acquisitionId.length);
      const forged = { ...other, name };
      for (const acquisitionId of [lease.acquisitionId, lease.acquisitionId + secret])
        await refusesToAdopt(stranger.locks, { ...forged, acquisitionId });
      await lease.renew();
      const ticket = await sent(lease);
      const shown = await stranger.locks.inspect(name);
      const [holder] = shown.holders;
      if (JSON.stringify(shown).includes(ticket.acquisitionId.slice(lease.acquisitionId.length)))
        throw new SafetyViolation('inspect() shows the secret of a ticket');
      assert.equal(holder?.acquisitionId, lease.acquisitionId);
      for (const acquisitionId of [holder.acquisitionId, holder.acquisitionId + secret])
        await refusesToAdopt(stranger.locks, { ...ticket, acquisitionId });
      const adopted = await adopt(stranger.locks, ticket);
      await adopted.renew();
      await adopted.release();
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'transfer/is-released-by-force',
    clause: '§14.3',
    title: 'a lease on its way is released by force by the id that inspect shows',
    ...needs(feature, forceRelease),
    async run(context) {
      const name = context.name();
      const { locks, backend } = await context.client();
      const ticket = await sent(await locks.lock(name).acquire({ ttlMs: HOLD_MS }));
      const [holder] = (await locks.inspect(name)).holders;
      const ended = await locks.forceRelease(name, { acquisitionId: holder?.acquisitionId });
      assert.deepEqual(
        ended.map(({ acquisitionId }) => acquisitionId),
        [holder?.acquisitionId],
      );
      assert.deepEqual(await holdersOf(backend, name), []);
      await refusesToAdopt(locks, ticket);
    },
  },
  {
    id: 'transfer/not-after-its-time',
    clause: '§19.3',
    title:
      'a client that comes after the ttl of a lease on its way does not adopt it, though nobody has taken the lock since',
    ...needs(feature),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs } = context.timing;
      const { locks } = await context.client();
      const ticket = await sent(await locks.lock(name).acquire({ ttlMs }));
      // No event tells this end: nobody waits for the lock.
      await context.sleep(ttlMs + context.stepMs + slackMs);
      await refusesToAdopt((await context.client()).locks, ticket);
      const { expiry = 'clock', ttl } = (await context.backend()).capabilities;
      if (expiry !== 'clock') return;
      await context.sleep(ttl.marginMs ?? 0);
      // By the store's clock too: a ticket without an end tells the adopting machine nothing.
      const { endsAt: _, ...endless } = ticket;
      await refusesToAdopt((await context.client()).locks, endless);
    },
  },
  {
    id: 'transfer/ends-by-its-ttl',
    clause: '§19.3',
    title:
      'a lease that nobody adopts ends by its ttl: then it is not adopted, beside no holder and beside none',
    ...needs(feature),
    async run(context) {
      const name = context.name();
      const { ttlMs } = context.timing;
      const { locks, backend } = await context.client();
      const ticket = await sent(await locks.lock(name).acquire({ ttlMs }));
      const others = await context.client({ ttlMs: HOLD_MS, waitMs: HOLD_MS });
      const successor = await others.locks.lock(name).acquire();
      await refusesToAdopt(locks, ticket);
      assert.deepEqual(await holdersOf(backend, name), [successor.acquisitionId]);
      await successor.renew();
      await successor.release();
      await refusesToAdopt(locks, ticket);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'transfer/not-after-a-steal',
    clause: '§19.3',
    title: 'a lease that was stolen or released by force on its way is not adopted',
    ...needs(feature, steal, forceRelease),
    async run(context) {
      const name = context.name();
      const { locks, backend } = await context.client();
      const stolen = await sent(await locks.lock(name).acquire({ ttlMs: HOLD_MS }));
      const thief = await locks.lock(name).acquire({ steal: true });
      await refusesToAdopt(locks, stolen);
      assert.deepEqual(await holdersOf(backend, name), [thief.acquisitionId]);
      const ended = await sent(thief);
      await locks.forceRelease(name);
      await refusesToAdopt(locks, ended);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'transfer/lost-reply-of-an-adoption',
    clause: '§19.2',
    title: 'an adoption whose reply was lost is sent again and holds once',
    ...needs(feature),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      let sendings = 0;
      const next = await context.client({
        ttlMs: HOLD_MS,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(request, enqueue, call) {
              const attempt = await backend.attempt(request, enqueue, call);
              sendings += 1;
              if (sendings === 1) throw new NoReply('attempt');
              return attempt;
            },
          }),
      });
      const adopted = await adopt(next.locks, await sent(await locks.lock(name).acquire({ ttlMs: HOLD_MS })));
      assert.equal(sendings, 2);
      assert.deepEqual(await holdersOf(next.backend, name), [adopted.acquisitionId]);
      await adopted.release();
      assert.deepEqual(await holdersOf(next.backend, name), []);
    },
  },
];

/** The ticket as it arrives in another process. */
async function sent(lease: Lease): Promise<TransferTicket> {
  return JSON.parse(JSON.stringify(await transfer(lease)));
}

async function refusesToAdopt(locks: LockManager, ticket: TransferTicket): Promise<void> {
  const adoption = adopt(locks, ticket);
  const lease = await adoption.then(
    () => true,
    (error: unknown) => assertNotHeld(error),
  );
  if (lease === true)
    throw new SafetyViolation(`a lease that is over was adopted: ${JSON.stringify(ticket)}`);
}

function assertNotHeld(error: unknown): void {
  assert.ok(isLockError(error, 'LOCK_NOT_HELD'), String(error));
}
