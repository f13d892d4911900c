import assert from 'node:assert/strict';
import { copiedGrant } from '../../src/backend/copied-grant.ts';
import type { Grant, LockBackend, LockMode, RenewalStatus } from '../../src/backend/types.ts';
import type { CaseContext } from '../case-context.ts';
import type { ConformanceCase } from '../case.ts';
import { anyClient, needs, shared } from '../needs.ts';
import { EXCLUSIVE, grab, holdersOf, openCall, requestOf, SHARED } from '../raw.ts';

const PERMIT: LockMode = { kind: 'permit', limit: 2, weight: 1 };
const MINUTE_MS = 60_000;

/** Cases of renewals by another client than the one that was granted. */
export const renewalByAnotherCases: readonly ConformanceCase[] = [
  {
    id: 'renewal/by-another-client',
    clause: '§4.8',
    title:
      'another client keeps a hold alive by a copy of its grant, and the one that was granted releases it',
    ...needs(anyClient),
    run: (context) => inEachMode(context, keptAlive),
  },
  {
    id: 'renewal/by-another-client-with-another-ttl',
    clause: '§4.8',
    title: 'a renewal by another client with another ttl sets the end to it, and takes the hold from nobody',
    ...needs(anyClient),
    run: (context) =>
      inEachMode(context, async (...args) => {
        await Promise.all([pushedOut(...args), pulledIn(...args), renewedByBoth(...args)]);
      }),
  },
  {
    id: 'renewal/by-another-client-after-a-downgrade',
    clause: '§4.8',
    title: 'another client renews a downgraded hold by a copy of the former grant',
    ...needs(anyClient, shared),
    async run(context) {
      const clients = await threeOf(context);
      const { first, second, third } = clients;
      const ttlMs = context.livingTtlMs;
      for (;;) {
        const startedAt = performance.now();
        const hold = await take(context, first, EXCLUSIVE, ttlMs);
        assert.equal((await first.downgrade?.(hold.grant, openCall))?.status, 'held');
        const statuses = [];
        for (const mode of [EXCLUSIVE, SHARED]) {
          const request = { ...hold.copy.request, mode };
          statuses.push(await renewed(second, { ...hold.copy, request }, MINUTE_MS));
        }
        // A pause of this process ended the hold, not the renewal.
        if (performance.now() - startedAt > ttlMs * 0.8) continue;
        assert.deepEqual(
          statuses.map(({ status }) => status),
          ['held', 'held'],
        );
        await context.sleep(ttlMs + 2 * context.timing.slackMs);
        assert.ok(!(await enters(third, hold.name, EXCLUSIVE)), 'a writer entered beside a renewed reader');
        assert.equal((await renewed(first, hold.grant, MINUTE_MS)).status, 'held');
        return await isReleased(clients, hold);
      }
    },
  },
  {
    id: 'renewal/by-another-client-revives-nothing',
    clause: '§4.8',
    title:
      'a renewal by another client of a hold that ended is answered with lost, and the resource stays free',
    ...needs(anyClient),
    run: (context) =>
      inEachMode(context, async (_, clients, mode) => {
        const { first, second, third } = clients;
        const released = await take(context, first, mode, MINUTE_MS);
        const forced = await take(context, first, mode, MINUTE_MS);
        const expired = await take(context, first, mode, context.timing.ttlMs);
        await first.release(released.grant, openCall);
        if (third.forceRelease === undefined) await first.abandon(forced.grant.request, openCall);
        else await third.forceRelease(forced.name, undefined, openCall);
        await context.until(
          'the third hold expired',
          async () => (await holdersOf(second, expired.name)).length === 0,
          30_000,
        );
        for (const { name, copy } of [released, forced, expired]) {
          assert.equal((await renewed(second, copy, MINUTE_MS)).status, 'lost');
          assert.ok(await enters(third, name, mode), 'a renewal by another client took a free resource');
        }
      }),
  },
];

/** The backends of three clients: one that is granted, one that renews for it, and one that looks. */
interface Clients {
  readonly first: LockBackend;
  readonly second: LockBackend;
  readonly third: LockBackend;
}

interface Hold {
  readonly name: string;
  readonly grant: Grant;
  readonly copy: Grant;
}

async function threeOf(context: CaseContext): Promise<Clients> {
  const [first, second, third] = [await context.backend(), await context.backend(), await context.backend()];
  return { first, second, third };
}

async function inEachMode(
  context: CaseContext,
  check: (context: CaseContext, clients: Clients, mode: LockMode) => Promise<void>,
): Promise<void> {
  const clients = await threeOf(context);
  const { modes } = clients.first.capabilities;
  const declared = [EXCLUSIVE, SHARED, PERMIT].filter(({ kind }) => modes.includes(kind));
  await Promise.all(declared.map((mode) => check(context, clients, mode)));
}

/** Takes a free resource in its queue, where it has one: cohorts begin a turn then. */
async function take(
  context: CaseContext,
  backend: LockBackend,
  mode: LockMode,
  ttlMs: number,
): Promise<Hold> {
  const name = context.name();
  const grant = await grab(backend, name, ttlMs, mode, backend.capabilities.order !== 'none');
  return { name, grant, copy: copiedGrant(grant) };
}

async function renewed(backend: LockBackend, grant: Grant, ttlMs: number): Promise<RenewalStatus> {
  return (await backend.renew([{ grant, ttlMs }], openCall))[0] as RenewalStatus;
}

/** Whether a client is granted a resource now, in a mode that holds alone or in this one. */
async function enters(backend: LockBackend, name: string, mode: LockMode): Promise<boolean> {
  const attempt = await backend.attempt(requestOf(name, mode, MINUTE_MS), false, openCall);
  if (attempt.status === 'granted') await backend.release(attempt.grant, openCall);
  return attempt.status === 'granted';
}

/** Asserts that the client that was granted frees the resource, and that the other one learns it at its next renewal. */
async function isReleased({ first, second, third }: Clients, { name, grant, copy }: Hold): Promise<void> {
  assert.deepEqual(await holdersOf(third, name), [copy.request.acquisitionId]);
  assert.notEqual(await first.release(grant, openCall), 'not-held');
  assert.deepEqual(await holdersOf(third, name), []);
  assert.equal((await renewed(second, copy, MINUTE_MS)).status, 'lost');
  assert.ok(await enters(third, name, EXCLUSIVE), 'a hold that another client renewed outlived its release');
}

async function keptAlive(context: CaseContext, clients: Clients, mode: LockMode): Promise<void> {
  const ttlMs = context.livingTtlMs;
  for (;;) {
    let sentAt = performance.now();
    const hold = await take(context, clients.first, mode, ttlMs);
    const elapsed = context.stopwatch();
    let hasStoodStill = false;
    while (elapsed() < 2.5 * ttlMs && !hasStoodStill) {
      await context.sleep(ttlMs / 4);
      const before = sentAt;
      sentAt = performance.now();
      const { status } = await renewed(clients.second, hold.copy, ttlMs);
      hasStoodStill = performance.now() - before > ttlMs * 0.8;
      if (!hasStoodStill) assert.equal(status, 'held');
    }
    const isFree = await enters(clients.third, hold.name, EXCLUSIVE);
    if (hasStoodStill || performance.now() - sentAt > ttlMs * 0.8) continue;
    assert.ok(!isFree, 'another entered though the hold was renewed');
    return await isReleased(clients, hold);
  }
}

/** Checks that a hold which another client renewed with a longer ttl still excludes others when it would have ended. */
async function pushedOut(context: CaseContext, clients: Clients, mode: LockMode): Promise<void> {
  const ttlMs = 2 * context.timing.ttlMs;
  for (;;) {
    const startedAt = performance.now();
    const hold = await take(context, clients.first, mode, ttlMs);
    const status = await renewed(clients.second, hold.copy, MINUTE_MS);
    if (performance.now() - startedAt > ttlMs * 0.8) continue;
    assertLastsFor(context, status, MINUTE_MS);
    await context.sleep(ttlMs + 2 * context.timing.slackMs);
    assert.ok(!(await enters(clients.third, hold.name, EXCLUSIVE)), 'another entered before the longer ttl');
    assert.equal((await renewed(clients.first, hold.grant, MINUTE_MS)).status, 'held');
    return await isReleased(clients, hold);
  }
}

/** Checks that a hold which another client renewed with a shorter ttl ends by then. */
async function pulledIn(context: CaseContext, clients: Clients, mode: LockMode): Promise<void> {
  const ttlMs = 2 * context.timing.ttlMs;
  const hold = await take(context, clients.first, mode, MINUTE_MS);
  const status = await renewed(clients.second, hold.copy, ttlMs);
  // The process that was granted would pass on a lease of which it does not know that it ends sooner (docs/spec.md §18.9).
  if (clients.first.capabilities.order === 'cohort' && mode === EXCLUSIVE) {
    assert.equal(status.status, 'unknown');
    return await isReleased(clients, hold);
  }
  assertLastsFor(context, status, ttlMs);
  await context.until(
    'the hold ended',
    async () => (await holdersOf(clients.third, hold.name)).length === 0,
    30_000,
  );
}

/** Checks that renewals by both clients at once, with two ttls, lose nothing. */
async function renewedByBoth(context: CaseContext, clients: Clients, mode: LockMode): Promise<void> {
  const hold = await take(context, clients.first, mode, MINUTE_MS);
  for (let round = 1; round <= 3; round += 1) {
    const statuses = await Promise.all([
      renewed(clients.first, hold.grant, MINUTE_MS),
      renewed(clients.second, hold.copy, 2 * MINUTE_MS),
    ]);
    for (const { status } of statuses) assert.notEqual(status, 'lost', 'a hold was reported as lost');
  }
  await isReleased(clients, hold);
}

function assertLastsFor({ stepMs }: CaseContext, status: RenewalStatus, ttlMs: number): void {
  assert.equal(status.status, 'held');
  const { validForMs = ttlMs } = status as { readonly validForMs?: number };
  assert.ok(
    validForMs > ttlMs / 2 && validForMs < ttlMs + stepMs,
    `the hold lasts ${validForMs} of ${ttlMs} ms`,
  );
}
