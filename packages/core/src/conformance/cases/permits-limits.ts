import type { LockBackend, LockMode } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { assertAbove, assertRising } from '../history.ts';
import { fencing, leaseTenure, needs, permits } from '../needs.ts';
import { EXCLUSIVE, grab, openCall, requestOf, SHARED } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';

/** Of several permits, and of permits and other modes after each other. */
export const permitsLimitsCases: readonly ConformanceCase[] = [
  {
    id: 'permits/tokens-rise',
    clause: '§15.8',
    title:
      'every permit has a token of its own above those before it: in turn, together, after one that ran out, beside other modes',
    ...needs(permits, fencing),
    async run(stage) {
      const clients = [await stage.client(), await stage.client(), await stage.client()];
      await Promise.all([
        oneAfterAnother(stage, clients),
        allTogether(stage, clients),
        afterTheEnd(stage, clients),
        amongOtherModes(stage, clients),
      ]);
    },
  },
  {
    id: 'permits/a-dead-limit-binds-nobody',
    clause: '§15.7',
    title:
      "what ran out without a release is in nobody's way: another limit, a lock, or permits after a lock are granted soon",
    ...needs(permits, leaseTenure),
    async run(stage) {
      const [dead, living] = [await stage.backend(), await stage.backend()];
      const sharedToo = dead.capabilities.modes.includes('shared');
      const pairs: readonly (readonly [LockMode, LockMode])[] = [
        [permit(2), permit(3)],
        [permit(3), permit(1)],
        [permit(2), EXCLUSIVE],
        [EXCLUSIVE, permit(2)],
        ...(sharedToo ? [[permit(2), SHARED] as const, [SHARED, permit(2)] as const] : []),
      ];
      await Promise.all(pairs.map(([before, after]) => follows(stage, dead, living, before, after)));
    },
  },
];

type Clients = readonly Awaited<ReturnType<Stage['client']>>[];

function permit(limit: number): LockMode {
  return { kind: 'permit', limit, weight: 1 };
}

async function oneAfterAnother(stage: Stage, clients: Clients): Promise<void> {
  const name = stage.name('in turn');
  const tokens: (bigint | undefined)[] = [];
  for (const { locks } of [...clients, ...clients]) {
    tokens.push(await locks.semaphore(name, 1).run((lease) => lease.fencingToken));
  }
  assertRising(tokens);
}

async function allTogether(stage: Stage, clients: Clients): Promise<void> {
  const name = stage.name('together');
  let before: bigint | undefined;
  for (let round = 0; round < 3; round += 1) {
    const leases = await Promise.all(clients.map(({ locks }) => locks.semaphore(name, 3).acquire()));
    const tokens = leases.map(({ fencingToken }) => fencingToken);
    assertAbove(before, tokens);
    before = tokens.reduce((highest, token) => ((token ?? 0n) > (highest ?? 0n) ? token : highest));
    await Promise.all(leases.map((lease) => lease.release()));
  }
}

async function afterTheEnd(stage: Stage, [client]: Clients): Promise<void> {
  const backend = await stage.backend();
  if (backend.capabilities.tenure === 'session' || client === undefined) return;
  const name = stage.name('after the end');
  const stale = await grab(backend, name, stage.timing.ttlMs, permit(1));
  const next = await client.locks.semaphore(name, 1).acquire({ waitMs: 30_000 });
  assertRising([stale.fencingToken, next.fencingToken]);
  await next.release();
}

async function amongOtherModes(stage: Stage, [client]: Clients): Promise<void> {
  const name = stage.name('among other modes');
  const tokens: (bigint | undefined)[] = [];
  const backend = await stage.backend();
  const between = backend.capabilities.modes.filter((kind) => kind !== 'permit');
  for (const kind of between) {
    for (const mode of [permit(2), { kind }]) {
      const grant = await grab(backend, name, stage.livingTtlMs, mode);
      tokens.push(grant.fencingToken);
      await backend.release(grant, openCall);
    }
  }
  tokens.push(await client?.locks.semaphore(name, 2).run((lease) => lease.fencingToken));
  assertRising(tokens);
}

/** After the end of a hold that nobody gave back, what contradicts its mode is granted, and not before it. */
async function follows(
  stage: Stage,
  dead: LockBackend,
  living: LockBackend,
  before: LockMode,
  after: LockMode,
): Promise<void> {
  const name = stage.name(`${before.kind} ${after.kind}`);
  const { idleGapMs, slackMs } = stage.timing;
  const { countedFrom, validForMs = stage.livingTtlMs } = await grab(dead, name, stage.livingTtlMs, before);
  await stage.until(
    `${after.kind} is granted after ${before.kind} that ran out`,
    async () => {
      const request = requestOf(name, after, 60_000);
      const attempt = await living.attempt(request, false, openCall);
      const answeredAt = performance.now();
      await living.abandon(request, openCall);
      if (attempt.status !== 'granted') {
        await stage.sleep(slackMs / 20);
        return false;
      }
      if (answeredAt < countedFrom + validForMs * 0.99 - 2)
        throw new SafetyViolation(`${after.kind} was granted beside ${before.kind}.`);
      return true;
    },
    validForMs + idleGapMs + 3 * slackMs,
  );
}
