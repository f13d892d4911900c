// One file: the cases of the end that a store reports, in each way to hold.
import assert from 'node:assert/strict';
import type { AcquireRequest, Grant, LockBackend, LockMode } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { behindProxies } from '../behind-proxies.ts';
import { leaseTenure, needs, wire } from '../needs.ts';
import { watchPauses } from '../pauses.ts';
import { EXCLUSIVE, grab, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { watch } from '../waiter.ts';

/** The end of a hold that the store reported: nobody else may hold before it, and somebody can soon after it. */
interface ReportedHold {
  readonly resource: string;
  readonly from: number;
  readonly validForMs: number;
  /** The mode that the store refuses for as long as the hold lasts. */
  readonly excluded: LockMode;
}

/** Several ttls, in steps of the backend, that differ by more than the error of an end that these cases can miss. */
interface Ttls {
  readonly short: number;
  readonly middle: number;
  readonly long: number;
  readonly living: number;
  /** Of a hold that was waited for. */
  readonly waiting: number;
}

interface Setup {
  readonly context: CaseContext;
  readonly holder: LockBackend;
  readonly other: LockBackend;
  readonly ttls: Ttls;
  name(): string;
}

/** A way to come by a hold. It gives `undefined` where this process stood still and the hold ended meanwhile. */
type WayToHold = (setup: Setup) => Promise<readonly ReportedHold[] | undefined>;

const HOUR_MS = 3_600_000;
const LEAST_PAUSE_MS = 3;

export const expiryReportedEndCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/store-keeps-what-it-reported',
    clause: '§1.6',
    title:
      'a hold that was taken or renewed in any way ends not before the end that its holder was given, and soon after it',
    ...needs(leaseTenure),
    async run(context) {
      await assertAllEndAsReported(context, await context.backend(), await context.backend());
    },
  },
  {
    id: 'expiry/late-replies-cost-validity',
    clause: '§1.2',
    title:
      'a hold that was taken in any way over a wire that delays replies ends not before the end that its holder was given',
    ...needs(wire, leaseTenure),
    async run(context) {
      const { ttlMs, slackMs } = context.timing;
      // The delay is longer than the margin before the end of a lease, and short compared to the ttl.
      const delayMs = Math.min(ttlMs / 4, slackMs / 3);
      const [holder, other] = [await behindProxies(context), await behindProxies(context)];
      for (const proxy of [...holder.proxies, ...other.proxies]) {
        proxy.latency(delayMs, { direction: 'toClient' });
      }
      await assertAllEndAsReported(context, holder.backend, other.backend);
    },
  },
];

async function assertAllEndAsReported(
  context: CaseContext,
  holder: LockBackend,
  other: LockBackend,
): Promise<void> {
  const witness = await context.backend();
  const setup = { context, holder, other, ttls: ttlsOf(context), name: () => context.name() };
  const longestPause = watchPauses(context);
  const entered = async (enter: WayToHold): Promise<readonly ReportedHold[]> => {
    const startedAt = performance.now();
    try {
      return (await enter(setup)) ?? [];
    } catch (error) {
      if (longestPause(startedAt) <= context.timing.slackMs / 2) throw error;
      return [];
    }
  };
  const rows = Object.entries(waysToHold(holder)).map(async ([way, enter]) => {
    const judged = new Set<number>();
    for (let holds = 1; judged.size < holds; ) {
      const all = await entered(enter);
      holds = Math.max(holds, all.length);
      await Promise.all(
        all.map(async (reported, index) => {
          if (await endsAsReported(context, witness, way, reported)) judged.add(index);
        }),
      );
    }
  });
  await Promise.all(rows);
}

function ttlsOf(context: CaseContext): Ttls {
  const { timing, livingTtlMs } = context;
  return {
    short: timing.ttlMs,
    middle: context.inSteps(timing.ttlMs + 700),
    long: context.inSteps(timing.ttlMs + 1_400),
    living: livingTtlMs,
    waiting: context.inSteps(livingTtlMs + 700),
  };
}

/** The ways that the backend supports. */
function waysToHold({ capabilities }: LockBackend): Record<string, WayToHold> {
  const { modes, features, order } = capabilities;
  return {
    'a plain attempt': async ({ holder, name, ttls }) => [reportedBy(await grab(holder, name(), ttls.short))],
    'a repeated attempt': repeated,
    'a renewal of two, the shorter first': renewal(({ middle, long }) => [middle, long]),
    'a renewal of two, the longer first': renewal(({ middle, long }) => [long, middle]),
    'a renewal by less than there was': renewal(({ short }) => [short]),
    ...(order !== 'none' && { 'a hand-off': handedOff, 'an attempt in turn': inTurn }),
    ...(features.includes('steal') && {
      'a steal of a short hold': stolen(({ short, middle }) => [short, middle]),
      'a steal of a long hold': stolen(({ short }) => [HOUR_MS, short]),
    }),
    ...(features.includes('many') && { 'one step for several': inOneStep }),
    ...(modes.includes('shared') && {
      'a downgrade': downgraded('nothing'),
      'a downgrade after a renewal': downgraded('before'),
      'a downgrade before a renewal': downgraded('after'),
    }),
    ...(modes.includes('permit') && {
      'a higher limit': resized(2, 3, 2),
      'a lower limit': resized(3, 1, 1),
    }),
  };
}

const repeated: WayToHold = async ({ context, holder, name, ttls }) => {
  const first = await grab(holder, name(), ttls.middle);
  await context.sleep(ttls.middle / 3);
  const askedAt = performance.now();
  const again = await holder.attempt(first.request, false, openCall);
  if (again.status !== 'granted')
    return slow(askedAt, ttls, `the attempt repeated with one id is ${again.status}`);
  const [before, after] = [reportedBy(first), reportedBy(again.grant)];
  return [endOf(before) > endOf(after) ? before : after];
};

const inTurn: WayToHold = async (setup) => {
  const request = await enqueued(setup, 'free');
  const { context, other } = setup;
  let grant: Grant | undefined;
  await context.until(
    'the first in the queue is granted',
    async () => {
      const attempt = await other.attempt(request, true, openCall);
      if (attempt.status === 'granted') grant = attempt.grant;
      return grant !== undefined;
    },
    context.timing.idleGapMs + 5 * context.timing.slackMs,
  );
  return grant && [reportedBy(grant)];
};

const handedOff: WayToHold = async (setup) => {
  const request = await enqueued(setup, 'freed when it waits');
  const { context, other } = setup;
  const { idleGapMs, slackMs } = context.timing;
  for (;;) {
    // A wake-up may get lost where a fallback makes up for it, as core's would: the attempt is repeated.
    const call = {
      ...openCall,
      deadline: performance.now() + idleGapMs,
      signal: AbortSignal.timeout(idleGapMs),
    };
    const grant = await other.awaitTurn?.(request, call);
    if (grant !== undefined) return [reportedBy(grant)];
    const attempt = await other.attempt(request, true, openCall);
    if (attempt.status === 'granted') return [reportedBy(attempt.grant)];
    await context.sleep(slackMs / 20);
  }
};

/** A request in the queue, whose predecessor has ended or is about to end. */
async function enqueued(
  { context, holder, other, ttls, name }: Setup,
  when: 'free' | 'freed when it waits',
): Promise<AcquireRequest> {
  const held = await grab(holder, name(), HOUR_MS);
  const request = requestOf(held.request.resource, EXCLUSIVE, ttls.waiting);
  assert.equal((await other.attempt(request, true, openCall)).status, 'contended');
  const free = async (): Promise<void> => {
    if (when !== 'free') await context.sleep(context.timing.slackMs / 10);
    await holder.release(held, openCall);
  };
  const freed = free();
  if (when === 'free') await freed;
  else watch(freed);
  return request;
}

function stolen(ttlsFor: (ttls: Ttls) => readonly [former: number, stolen: number]): WayToHold {
  return async ({ holder, other, name, ttls }) => {
    const [formerMs, ttlMs] = ttlsFor(ttls);
    const { request } = await grab(holder, name(), formerMs);
    const steal = { ...requestOf(request.resource, EXCLUSIVE, ttlMs), steal: true } as const;
    const askedAt = performance.now();
    const attempt = await other.attempt(steal, false, openCall);
    if (attempt.status !== 'granted')
      return slow(askedAt, ttls, `an attempt that steals is ${attempt.status}`);
    return [reportedBy(attempt.grant)];
  };
}

const inOneStep: WayToHold = async ({ holder, name, ttls }) => {
  const askedAt = performance.now();
  const requests = [ttls.middle, ttls.short, ttls.long].map((ttlMs) => requestOf(name(), EXCLUSIVE, ttlMs));
  const grants = await holder.attemptMany?.(requests, openCall);
  if (grants === undefined) return slow(askedAt, ttls, 'all resources are free, and were refused');
  return grants.map((grant) => reportedBy(grant));
};

/** One renewal of several holds, one for each ttl. */
function renewal(ttlsFor: (ttls: Ttls) => readonly number[]): WayToHold {
  return async ({ holder, name, ttls }) => {
    const grants = await Promise.all(ttlsFor(ttls).map(() => grab(holder, name(), ttls.living)));
    const items = grants.map((grant, index) => ({ grant, ttlMs: ttlsFor(ttls)[index] as number }));
    return renewed(holder, items, EXCLUSIVE);
  };
}

async function renewed(
  backend: LockBackend,
  items: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  excluded: LockMode,
): Promise<readonly ReportedHold[] | undefined> {
  const from = performance.now();
  const renewalStatuses = await backend.renew(items, openCall);
  const answeredAt = performance.now();
  const reported = items.flatMap(({ grant: { request }, ttlMs }, index) => {
    const renewalStatus = renewalStatuses[index];
    if (renewalStatus?.status !== 'held') return [];
    return [{ resource: request.resource, from, validForMs: renewalStatus.validForMs ?? ttlMs, excluded }];
  });
  if (reported.length === items.length) return reported;
  for (const [index, { grant }] of items.entries()) {
    const isLost = renewalStatuses[index]?.status === 'lost' && answeredAt < safeEndOf(reportedBy(grant));
    assert.ok(!isLost, 'a renewal before the end was answered with a loss');
  }
  return undefined;
}

/** A renewal that took most of the ttl may have failed for a good reason. */
function slow(askedAt: number, { short }: Ttls, fault: string): undefined {
  assert.ok(performance.now() - askedAt > short / 2, fault);
}

function downgraded(renew: 'nothing' | 'before' | 'after'): WayToHold {
  return async ({ holder, name, ttls }) => {
    const grant = await grab(holder, name(), ttls.living);
    const items = [{ grant, ttlMs: ttls.middle }];
    let reported: readonly ReportedHold[] | undefined = [reportedBy(grant)];
    if (renew === 'before') reported = await renewed(holder, items, EXCLUSIVE);
    const renewalStatus = await holder.downgrade?.(grant, openCall);
    if (reported === undefined) return undefined;
    if (renewalStatus?.status !== 'held') {
      const isLost =
        renewalStatus?.status === 'lost' && reported.every((one) => performance.now() < safeEndOf(one));
      assert.ok(!isLost, 'a downgrade before the end was answered with a loss');
      return undefined;
    }
    return renew === 'after' ? renewed(holder, items, EXCLUSIVE) : reported;
  };
}

/** A hold of two permits while the limit changes, and a request that does not fit beside it. */
function resized(limit: number, changed: number, weight: number): WayToHold {
  return async ({ holder, other, name, ttls }) => {
    const grant = await grab(holder, name(), ttls.middle, { kind: 'permit', limit, weight: 2 });
    await other.resize?.(grant.request.resource, changed, openCall);
    return [{ ...reportedBy(grant), excluded: { kind: 'permit', limit: changed, weight } }];
  };
}

function reportedBy(grant: Grant): ReportedHold {
  const { request, countedFrom, validForMs = request.ttlMs } = grant;
  return { resource: request.resource, from: countedFrom, validForMs, excluded: EXCLUSIVE };
}

function endOf({ from, validForMs }: ReportedHold): number {
  return from + validForMs;
}

/** The end as the holder counts it (docs/spec.md §1.2). */
function safeEndOf({ from, validForMs }: ReportedHold): number {
  return from + validForMs * 0.99 - 2;
}

/**
 * Attempts the resource ever more often towards the reported end, and then until it is granted. Gives false where this
 * process stood still when it should have attempted: an end that came too early could have gone unseen.
 */
async function endsAsReported(
  context: CaseContext,
  witness: LockBackend,
  way: string,
  reported: ReportedHold,
): Promise<boolean> {
  const { ttlMs, slackMs, idleGapMs } = context.timing;
  const leftMs = (): number => endOf(reported) - performance.now();
  let refusedBefore = Number.POSITIVE_INFINITY;
  while (leftMs() > 0) {
    const sentBefore = leftMs();
    if (await isGranted(witness, way, reported)) return refusedBefore <= ttlMs / 2;
    refusedBefore = sentBefore;
    await context.sleep(Math.max(LEAST_PAUSE_MS, leftMs() / 2));
  }
  await context.until(
    `after ${way} the next one is granted`,
    () => isGranted(witness, way, reported),
    idleGapMs + 3 * slackMs,
  );
  return refusedBefore <= ttlMs / 2;
}

async function isGranted(witness: LockBackend, way: string, reported: ReportedHold): Promise<boolean> {
  const request = requestOf(reported.resource, reported.excluded, HOUR_MS);
  const attempt = await witness.attempt(request, false, openCall);
  const answeredAt = performance.now();
  assert.notEqual(attempt.status, 'conflict');
  if (attempt.status !== 'granted') return false;
  await witness.abandon(request, openCall);
  if (answeredAt >= safeEndOf(reported)) return true;
  const earlyMs = Math.ceil(endOf(reported) - answeredAt);
  throw new SafetyViolation(
    `After ${way} the store reported ${Math.round(reported.validForMs)} ms, and another was granted ${earlyMs} ms before their ` +
      'end. Either the store ended the hold early, or the grant reports too much: countedFrom is read before the last ' +
      'request that was sent while ungranted, and validForMs is what the store keeps it for from then on.',
  );
}
