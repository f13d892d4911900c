import assert from 'node:assert/strict';
import type { AcquireRequest, Grant, LockBackend, LockMode } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { leaseTenure, needs } from '../needs.ts';
import { watchPauses } from '../pauses.ts';
import { EXCLUSIVE, grab, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';
import { watch } from '../waiter.ts';

/** What a client was told of a hold: until then nobody else may hold, and soon after it somebody may. */
interface Told {
  readonly resource: string;
  readonly from: number;
  readonly validForMs: number;
  /** What is refused for as long as it lasts. */
  readonly excluded: LockMode;
}

/** Several ttls that differ by more than the end of a hold can be off unseen, in steps of the backend. */
interface Ttls {
  readonly short: number;
  readonly middle: number;
  readonly long: number;
  readonly living: number;
  /** Longer than a store may give somebody in the queue to claim what was handed over. */
  readonly patient: number;
}

interface Scene {
  readonly stage: Stage;
  readonly holder: LockBackend;
  readonly other: LockBackend;
  readonly ttls: Ttls;
  name(): string;
}

/** A way to come by a hold. `undefined`: this process stood still, and the hold ended in between. */
type Door = (scene: Scene) => Promise<readonly Told[] | undefined>;

const HOUR_MS = 3_600_000;
const LEAST_PAUSE_MS = 3;

export const expiryToldCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/store-keeps-what-was-told',
    clause: '§1.6',
    title:
      'by whatever door a hold came, and whatever its renewal was sent with, it ends not before its holder was told, and soon after',
    ...needs(leaseTenure),
    async run(stage) {
      const [holder, other, witness] = [await stage.backend(), await stage.backend(), await stage.backend()];
      const scene = { stage, holder, other, ttls: ttlsOf(stage, holder), name: () => stage.name() };
      const longestPause = watchPauses(stage);
      const entered = async (enter: Door): Promise<readonly Told[]> => {
        const startedAt = performance.now();
        try {
          return (await enter(scene)) ?? [];
        } catch (error) {
          if (longestPause(startedAt) <= stage.timing.slackMs / 2) throw error;
          return [];
        }
      };
      const rows = Object.entries(doorsOf(holder)).map(async ([door, enter]) => {
        const judged = new Set<number>();
        for (let holds = 1; judged.size < holds; ) {
          const all = await entered(enter);
          holds = Math.max(holds, all.length);
          await Promise.all(
            all.map(async (told, index) => {
              if (await endsAsTold(stage, witness, door, told)) judged.add(index);
            }),
          );
        }
      });
      await Promise.all(rows);
    },
  },
];

function ttlsOf({ timing, livingTtlMs }: Stage, { capabilities }: LockBackend): Ttls {
  const { stepMs } = capabilities.ttl;
  const inSteps = (ms: number): number => Math.ceil(ms / stepMs) * stepMs;
  return {
    short: inSteps(timing.ttlMs),
    middle: inSteps(timing.ttlMs + 700),
    long: inSteps(timing.ttlMs + 1_400),
    living: inSteps(livingTtlMs),
    patient: inSteps(livingTtlMs + 700),
  };
}

/** Those that the backend has. */
function doorsOf({ capabilities }: LockBackend): Record<string, Door> {
  const { modes, features, order } = capabilities;
  return {
    'a plain attempt': async ({ holder, name, ttls }) => [toldBy(await grab(holder, name(), ttls.short))],
    'a repeated attempt': repeated,
    'a renewal of two, the shorter first': renewal(({ middle, long }) => [middle, long]),
    'a renewal of two, the longer first': renewal(({ middle, long }) => [long, middle]),
    'a renewal by less than there was': renewal(({ short }) => [short]),
    ...(order === 'fifo' && { 'a hand-over': handedOver, 'an attempt in turn': inTurn }),
    ...(features.includes('steal') && {
      'a theft of a short hold': theft(({ short, middle }) => [short, middle]),
      'a theft of a long hold': theft(({ short }) => [HOUR_MS, short]),
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

const repeated: Door = async ({ stage, holder, name, ttls }) => {
  const first = await grab(holder, name(), ttls.middle);
  await stage.sleep(ttls.middle / 3);
  const askedAt = performance.now();
  const again = await holder.attempt(first.request, false, openCall);
  if (again.status !== 'granted') return slow(askedAt, ttls, `repeated, it is ${again.status}`);
  const [before, after] = [toldBy(first), toldBy(again.grant)];
  return [endOf(before) > endOf(after) ? before : after];
};

const inTurn: Door = async (scene) => {
  const request = await enqueued(scene, 'free');
  const { stage, other } = scene;
  let grant: Grant | undefined;
  await stage.until(
    'the next in turn is granted',
    async () => {
      const attempt = await other.attempt(request, true, openCall);
      if (attempt.status === 'granted') grant = attempt.grant;
      return grant !== undefined;
    },
    stage.timing.idleGapMs + 5 * stage.timing.slackMs,
  );
  return grant && [toldBy(grant)];
};

const handedOver: Door = async (scene) => {
  const request = await enqueued(scene, 'freed when it waits');
  const { stage, other } = scene;
  const { idleGapMs, slackMs } = stage.timing;
  for (;;) {
    // A wake-up may get lost if a fallback makes up for it, as core's would.
    const call = {
      ...openCall,
      deadline: performance.now() + idleGapMs,
      signal: AbortSignal.timeout(idleGapMs),
    };
    const grant = await other.awaitTurn?.(request, call);
    if (grant !== undefined) return [toldBy(grant)];
    const attempt = await other.attempt(request, true, openCall);
    if (attempt.status === 'granted') return [toldBy(attempt.grant)];
    await stage.sleep(slackMs / 20);
  }
};

/** A request in the queue, and the one before it gone, or about to go. */
async function enqueued(
  { stage, holder, other, ttls, name }: Scene,
  when: 'free' | 'freed when it waits',
): Promise<AcquireRequest> {
  const held = await grab(holder, name(), HOUR_MS);
  const request = requestOf(held.request.resource, EXCLUSIVE, ttls.patient);
  assert.equal((await other.attempt(request, true, openCall)).status, 'contended');
  const free = async (): Promise<void> => {
    if (when !== 'free') await stage.sleep(stage.timing.slackMs / 10);
    await holder.release(held, openCall);
  };
  const freed = free();
  if (when === 'free') await freed;
  else watch(freed);
  return request;
}

function theft(ttlsFor: (ttls: Ttls) => readonly [robbed: number, thief: number]): Door {
  return async ({ holder, other, name, ttls }) => {
    const [robbedMs, ttlMs] = ttlsFor(ttls);
    const { request } = await grab(holder, name(), robbedMs);
    const stolen = { ...requestOf(request.resource, EXCLUSIVE, ttlMs), steal: true } as const;
    const askedAt = performance.now();
    const attempt = await other.attempt(stolen, false, openCall);
    if (attempt.status !== 'granted') return slow(askedAt, ttls, `a theft is ${attempt.status}`);
    return [toldBy(attempt.grant)];
  };
}

const inOneStep: Door = async ({ holder, name, ttls }) => {
  const askedAt = performance.now();
  const requests = [ttls.middle, ttls.short, ttls.long].map((ttlMs) => requestOf(name(), EXCLUSIVE, ttlMs));
  const grants = await holder.attemptMany?.(requests, openCall);
  if (grants === undefined) return slow(askedAt, ttls, 'all are free, and were refused');
  return grants.map((grant) => toldBy(grant));
};

/** One renewal of as many holds as there are ttls. */
function renewal(ttlsFor: (ttls: Ttls) => readonly number[]): Door {
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
): Promise<readonly Told[] | undefined> {
  const from = performance.now();
  const standings = await backend.renew(items, openCall);
  const answeredAt = performance.now();
  const told = items.flatMap(({ grant: { request }, ttlMs }, index) => {
    const standing = standings[index];
    if (standing?.status !== 'held') return [];
    return [{ resource: request.resource, from, validForMs: standing.validForMs ?? ttlMs, excluded }];
  });
  if (told.length === items.length) return told;
  for (const [index, { grant }] of items.entries()) {
    const isLost = standings[index]?.status === 'lost' && answeredAt < safeEndOf(toldBy(grant));
    assert.ok(!isLost, 'a renewal before the end was answered with a loss');
  }
  return undefined;
}

/** What took most of a ttl may rightly have failed. */
function slow(askedAt: number, { short }: Ttls, fault: string): undefined {
  assert.ok(performance.now() - askedAt > short / 2, fault);
}

function downgraded(renew: 'nothing' | 'before' | 'after'): Door {
  return async ({ holder, name, ttls }) => {
    const grant = await grab(holder, name(), ttls.living);
    const items = [{ grant, ttlMs: ttls.middle }];
    let told: readonly Told[] | undefined = [toldBy(grant)];
    if (renew === 'before') told = await renewed(holder, items, EXCLUSIVE);
    const standing = await holder.downgrade?.(grant, openCall);
    if (told === undefined) return undefined;
    if (standing?.status !== 'held') {
      const isLost = standing?.status === 'lost' && told.every((one) => performance.now() < safeEndOf(one));
      assert.ok(!isLost, 'a downgrade before the end was answered with a loss');
      return undefined;
    }
    return renew === 'after' ? renewed(holder, items, EXCLUSIVE) : told;
  };
}

/** A hold of two permits while the limit changes, and a request that does not fit beside it. */
function resized(limit: number, changed: number, weight: number): Door {
  return async ({ holder, other, name, ttls }) => {
    const grant = await grab(holder, name(), ttls.middle, { kind: 'permit', limit, weight: 2 });
    await other.resize?.(grant.request.resource, changed, openCall);
    return [{ ...toldBy(grant), excluded: { kind: 'permit', limit: changed, weight } }];
  };
}

function toldBy(grant: Grant): Told {
  const { request, countedFrom, validForMs = request.ttlMs } = grant;
  return { resource: request.resource, from: countedFrom, validForMs, excluded: EXCLUSIVE };
}

function endOf({ from, validForMs }: Told): number {
  return from + validForMs;
}

/** As long as a holder believes in it (docs/spec.md §1.2). */
function safeEndOf({ from, validForMs }: Told): number {
  return from + validForMs * 0.99 - 2;
}

/**
 * Asks for the resource, ever more often towards the end that was told, and then until it is granted.
 * False: this process stood still when it should have asked, and an end too early could have passed unseen.
 */
async function endsAsTold(stage: Stage, witness: LockBackend, door: string, told: Told): Promise<boolean> {
  const { ttlMs, slackMs, idleGapMs } = stage.timing;
  const leftMs = (): number => endOf(told) - performance.now();
  let refusedBefore = Number.POSITIVE_INFINITY;
  while (leftMs() > 0) {
    const sentBefore = leftMs();
    if (await isGranted(witness, door, told)) return refusedBefore <= ttlMs / 2;
    refusedBefore = sentBefore;
    await stage.sleep(Math.max(LEAST_PAUSE_MS, leftMs() / 2));
  }
  await stage.until(
    `after ${door} the next one is granted`,
    () => isGranted(witness, door, told),
    idleGapMs + 3 * slackMs,
  );
  return refusedBefore <= ttlMs / 2;
}

async function isGranted(witness: LockBackend, door: string, told: Told): Promise<boolean> {
  const request = requestOf(told.resource, told.excluded, HOUR_MS);
  const attempt = await witness.attempt(request, false, openCall);
  const answeredAt = performance.now();
  await witness.abandon(request, openCall);
  assert.notEqual(attempt.status, 'conflict');
  if (attempt.status !== 'granted') return false;
  if (answeredAt >= safeEndOf(told)) return true;
  const tookMs = Math.round(answeredAt - told.from);
  throw new SafetyViolation(
    `After ${door}, told for ${told.validForMs} ms, another was granted after ${tookMs} ms.`,
  );
}
