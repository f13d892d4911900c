import type { LockBackend, LockMode } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { assertAbove, assertRising } from '../critical-section.ts';
import { fencing, leaseTenure, needs, permits } from '../needs.ts';
import { EXCLUSIVE, grab, openCall, requestOf, SHARED } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';

/** Cases of several permits, and of permits and other modes that follow each other. */
export const permitsLimitsCases: readonly ConformanceCase[] = [
  {
    id: 'permits/tokens-rise',
    clause: '§15.8',
    title:
      'every permit has a token of its own above the earlier ones: in turn, together, after an expired one, after other modes',
    ...needs(permits, fencing),
    async run(context) {
      const clients = [await context.client(), await context.client(), await context.client()];
      await Promise.all([
        oneAfterAnother(context, clients),
        allTogether(context, clients),
        afterTheEnd(context, clients),
        amongOtherModes(context, clients),
      ]);
    },
  },
  {
    id: 'permits/a-dead-limit-binds-nobody',
    clause: '§15.7',
    title:
      "what ran out without a release is in nobody's way: another limit, a lock, or permits after a lock are granted soon",
    ...needs(permits, leaseTenure),
    async run(context) {
      const [dead, living] = [await context.backend(), await context.backend()];
      const sharedToo = dead.capabilities.modes.includes('shared');
      const pairs: readonly (readonly [LockMode, LockMode])[] = [
        [permit(2), permit(3)],
        [permit(3), permit(1)],
        [permit(2), EXCLUSIVE],
        [EXCLUSIVE, permit(2)],
        ...(sharedToo ? [[permit(2), SHARED] as const, [SHARED, permit(2)] as const] : []),
      ];
      await Promise.all(pairs.map(([before, after]) => follows(context, dead, living, before, after)));
    },
  },
];

type Clients = readonly Awaited<ReturnType<CaseContext['client']>>[];

function permit(limit: number): LockMode {
  return { kind: 'permit', limit, weight: 1 };
}

async function oneAfterAnother(context: CaseContext, clients: Clients): Promise<void> {
  const name = context.name('in turn');
  const tokens: (bigint | undefined)[] = [];
  for (const { locks } of [...clients, ...clients]) {
    tokens.push(await locks.semaphore(name, 1).run((lease) => lease.fencingToken));
  }
  assertRising(tokens);
}

async function allTogether(context: CaseContext, clients: Clients): Promise<void> {
  const name = context.name('together');
  let before: bigint | undefined;
  for (let round = 0; round < 3; round += 1) {
    const leases = await Promise.all(clients.map(({ locks }) => locks.semaphore(name, 3).acquire()));
    const tokens = leases.map(({ fencingToken }) => fencingToken);
    assertAbove(before, tokens);
    before = tokens.reduce((highest, token) => ((token ?? 0n) > (highest ?? 0n) ? token : highest));
    await Promise.all(leases.map((lease) => lease.release()));
  }
}

async function afterTheEnd(context: CaseContext, [client]: Clients): Promise<void> {
  const backend = await context.backend();
  if (backend.capabilities.tenure === 'session' || client === undefined) return;
  const name = context.name('after the end');
  const stale = await grab(backend, name, context.timing.ttlMs, permit(1));
  const next = await client.locks.semaphore(name, 1).acquire({ waitMs: 30_000 });
  assertRising([stale.fencingToken, next.fencingToken]);
  await next.release();
}

async function amongOtherModes(context: CaseContext, [client]: Clients): Promise<void> {
  const name = context.name('among other modes');
  const tokens: (bigint | undefined)[] = [];
  const backend = await context.backend();
  const between = backend.capabilities.modes.filter((kind) => kind !== 'permit');
  for (const kind of between) {
    for (const mode of [permit(2), { kind }]) {
      const grant = await grab(backend, name, context.livingTtlMs, mode);
      tokens.push(grant.fencingToken);
      await backend.release(grant, openCall);
    }
  }
  tokens.push(await client?.locks.semaphore(name, 2).run((lease) => lease.fencingToken));
  assertRising(tokens);
}

/** Checks that a mode in conflict with an abandoned hold is granted after the end of that hold, and not before it. */
async function follows(
  context: CaseContext,
  dead: LockBackend,
  living: LockBackend,
  before: LockMode,
  after: LockMode,
): Promise<void> {
  const name = context.name(`${before.kind} ${after.kind}`);
  const { idleGapMs, slackMs } = context.timing;
  const { countedFrom, validForMs = context.livingTtlMs } = await grab(
    dead,
    name,
    context.livingTtlMs,
    before,
  );
  await context.until(
    `${after.kind} is granted after ${before.kind} that expired`,
    async () => {
      const request = requestOf(name, after, 60_000);
      const attempt = await living.attempt(request, false, openCall);
      const answeredAt = performance.now();
      await living.abandon(request, openCall);
      if (attempt.status !== 'granted') {
        await context.sleep(slackMs / 20);
        return false;
      }
      if (answeredAt < countedFrom + validForMs * 0.99 - 2)
        throw new SafetyViolation(`${after.kind} was granted beside ${before.kind}.`);
      return true;
    },
    validForMs + idleGapMs + 3 * slackMs,
  );
}
