import type { AcquireRequest, Grant, LockMode } from '@locks/core/backend';
import {
  call,
  granted,
  type RedisServer,
  request,
  startProxy,
  startReplicated,
  waitUntil,
} from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { participant, type RedisParticipant } from './participant.ts';

useRedis();

const shared: LockMode = { kind: 'shared' };
const permit = (limit: number, weight = 1): LockMode => ({ kind: 'permit', limit, weight });
const wanted = (resource: string, mode: LockMode, ttlMs?: number): AcquireRequest => ({
  ...request(resource, ttlMs),
  mode,
});

async function take(
  { backend }: RedisParticipant,
  resource: string,
  mode: LockMode,
  ttlMs?: number,
): Promise<Grant> {
  return granted(await backend.attempt(wanted(resource, mode, ttlMs), true, call));
}

const untilHeld = (who: RedisParticipant, name: string, holders: number) =>
  waitUntil(async () => (await who.backend.inspect(name, call)).holders.length === holders, {
    what: `${holders} holders of ${name}`,
  });

describe('readers', () => {
  it('at the head are granted by the release of the writer, all of them, each with one message', async () => {
    await using writer = participant(redis);
    await using a = participant(redis, { maxPollMs: 60_000 });
    await using b = participant(redis, { maxPollMs: 60_000 });
    const name = fresh();
    const held = await writer.take(name);
    const turns: Promise<Grant | undefined>[] = [];
    await Promise.all([a.openChannel(), b.openChannel()]);
    for (const who of [a, b, a, a, b]) turns.push((await who.queue(wanted(name, shared))).turn);
    const last = await writer.queue(request(name));
    await writer.backend.release(held, call);
    const grants = await Promise.all(turns);
    const tokens = grants.map((grant) => grant?.fencingToken as bigint);
    expect(new Set(tokens).size).toBe(5);
    expect([...tokens].sort((x, y) => Number(x - y))).toEqual(tokens);
    const state = await a.backend.inspect(name, call);
    expect(state.holders.map(({ mode }) => mode.kind)).toEqual(Array(5).fill('shared'));
    expect(state.waiters.map(({ mode }) => mode.kind)).toEqual(['exclusive']);
    for (const [index, grant] of grants.entries()) {
      const { backend } = index % 3 === 1 ? b : a;
      expect(await backend.release(grant as Grant, call)).toBe('released');
    }
    expect(await writer.backend.release((await last.turn) as Grant, call)).toBe('released');
    expect(await redis.command('KEYS', `*${name}*`)).toEqual([]);
  });

  it('of the same process are granted before the release resolves', async () => {
    await using a = participant(redis);
    const name = fresh();
    const held = await a.take(name);
    const events: string[] = [];
    const turns = [];
    for (const at of [1, 2, 3]) {
      turns.push((await a.queue(wanted(name, shared))).turn.then(() => events.push(`granted ${at}`)));
    }
    await a.backend
      .release(held, call)
      .then(() => Promise.resolve())
      .then(() => events.push('released'));
    await Promise.all(turns);
    expect(events).toEqual(['granted 1', 'granted 2', 'granted 3', 'released']);
  });

  it('cost one request to get in and one to leave, and renew many at a time', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    const name = fresh();
    await a.backend.release(await take(a, name, shared), call);
    await a.backend.release(await take(a, name, permit(50)), call);
    await a.backend.release(await a.take(fresh()), call);
    proxy.resetCounts();
    const grants = await Promise.all(Array.from({ length: 40 }, () => take(a, name, permit(50))));
    const exclusive = await a.take(fresh());
    expect(proxy.countRequests()).toBe(41);
    const items = [...grants, exclusive].map((grant) => ({ grant, ttlMs: 60_000 }));
    await a.backend.renew(items, call);
    // The first renewal also sent the script.
    proxy.resetCounts();
    expect(await a.backend.renew(items, call)).toEqual(Array(41).fill({ status: 'held' }));
    expect(proxy.countRequests()).toBe(2);
    for (const { grant } of items) expect(await a.backend.release(grant, call)).toBe('released');
    expect(proxy.countRequests()).toBe(2 + 41);
  });

  it('that were waited for last their ttl, counted from when they were last known to wait', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const enqueuedAt = call.now();
    const turns = [];
    for (const mode of [shared, shared]) turns.push((await b.queue(wanted(name, mode))).turn);
    const answeredAt = call.now();
    await a.backend.release(held, call);
    for (const grant of (await Promise.all(turns)) as Grant[]) {
      expect(grant.validForMs).toBe(30_000);
      expect(grant.countedFrom).toBeGreaterThanOrEqual(enqueuedAt);
      expect(grant.countedFrom).toBeLessThanOrEqual(answeredAt);
    }
    const { holders } = await a.backend.inspect(name, call);
    for (const { expiresInMs } of holders) expect(expiresInMs).toBeGreaterThan(25_000);
  });

  it('that nobody waits for any more are released', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const { turn } = await b.queue(wanted(name, shared));
    const queue = `{lock::${name}}:q`;
    const [, member] = (await redis.command('ZRANGE', queue, 0, 1)) as string[];
    const position = Number(await redis.command('ZSCORE', queue, member as string));
    await redis.command('ZADD', queue, position - 1, String(member).replace(/^[^|]+/, 'ghost'));
    await a.backend.release(held, call);
    const grant = (await turn) as Grant;
    await untilHeld(a, name, 1);
    expect((await a.backend.inspect(name, call)).holders[0]?.acquisitionId).toBe(grant.request.acquisitionId);
  });

  it('are granted by a downgrade, which keeps the token and the end, and by which the holder still renews and releases', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name, 20_000);
    const { turn } = await b.queue(wanted(name, shared));
    const renewalStatus = await a.backend.downgrade?.(held, call);
    expect(renewalStatus).toMatchObject({ status: 'held' });
    const reader = (await turn) as Grant;
    const { holders } = await a.backend.inspect(name, call);
    const own = holders.find(({ acquisitionId }) => acquisitionId === held.request.acquisitionId);
    expect(own).toMatchObject({ mode: shared, fencingToken: held.fencingToken, label: 'test' });
    expect(own?.expiresInMs).toBeGreaterThan(15_000);
    // The grant from before the downgrade, and the one that core makes of it.
    const downgraded = { ...held, request: { ...held.request, mode: shared } };
    for (const grant of [held, downgraded])
      expect(await a.backend.renew([{ grant, ttlMs: 20_000 }], call)).toEqual([{ status: 'held' }]);
    expect(await a.backend.release(downgraded, call)).toBe('released');
    expect(await a.backend.release(held, call)).toBe('not-held');
    expect(await b.backend.release(reader, call)).toBe('released');
  });
});

describe('permits', () => {
  it('stay those of one limit, which resize changes for holders and waiters', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await b.openChannel();
    const name = fresh();
    expect(await a.backend.resize?.(name, 9, call)).toEqual({ status: 'set' });
    const first = await take(a, name, permit(2, 2));
    const other = { status: 'conflict', with: permit(2) };
    expect(await b.backend.attempt(wanted(name, permit(3)), true, call)).toEqual(other);
    expect(await b.backend.attempt(wanted(name, shared), true, call)).toEqual(other);
    expect(await b.backend.attempt(request(name), false, call)).toEqual(other);
    const { turn } = await b.queue(wanted(name, permit(2)));
    expect(await a.backend.resize?.(name, 3, call)).toEqual({ status: 'set' });
    const second = (await turn) as Grant;
    const { holders } = await a.backend.inspect(name, call);
    expect(holders.map(({ mode }) => mode)).toEqual(expect.arrayContaining([permit(3, 2), permit(3, 1)]));
    expect(await a.backend.attempt(wanted(name, permit(2)), true, call)).toMatchObject({ with: permit(3) });
    await a.backend.release(first, call);
    await b.backend.release(second, call);
    const writer = await a.take(name);
    expect(await a.backend.attempt(wanted(name, permit(2)), true, call)).toEqual({
      status: 'conflict',
      with: { kind: 'exclusive' },
    });
    expect(await a.backend.resize?.(name, 3, call)).toMatchObject({ status: 'conflict' });
    await a.backend.release(writer, call);
  });

  it('are ended by forceRelease, all or one, and reported with their mode and token', async () => {
    await using a = participant(redis);
    const name = fresh();
    const [one, other] = [await take(a, name, permit(4, 1)), await take(a, name, permit(4, 3))];
    const ended = await a.backend.forceRelease?.(name, one.request.acquisitionId, call);
    expect(ended).toMatchObject([{ mode: permit(4, 1), fencingToken: one.fencingToken, label: 'test' }]);
    expect(await a.backend.renew([{ grant: other, ttlMs: 9_000 }], call)).toEqual([{ status: 'held' }]);
    expect(await a.backend.forceRelease?.(name, undefined, call)).toHaveLength(1);
    expect(await a.backend.renew([{ grant: other, ttlMs: 9_000 }], call)).toMatchObject([
      { status: 'lost', reason: 'force-released' },
    ]);
  });
});

describe('several at once', () => {
  it('are one request, all or nothing', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    const names = [fresh(), fresh(), fresh(), fresh(), fresh()];
    const extra = fresh();
    const ask = () =>
      names.map((name, at) => wanted(name, [request(name).mode, shared, permit(2, 2)][at % 3] as LockMode));
    const release = async (grants: readonly Grant[] | undefined) => {
      for (const grant of grants ?? []) expect(await a.backend.release(grant, call)).toBe('released');
    };
    await release(await a.backend.attemptMany?.(ask(), call));
    proxy.resetCounts();
    const requests = ask();
    const grants = await a.backend.attemptMany?.(requests, call);
    expect(proxy.countRequests()).toBe(1);
    expect(grants?.map(({ request: of }) => of)).toEqual(requests);
    const again = await a.backend.attemptMany?.(requests, call);
    expect(again?.map(({ fencingToken }) => fencingToken)).toEqual(
      grants?.map(({ fencingToken }) => fencingToken),
    );
    expect(await a.backend.attemptMany?.([request(extra), ...ask()], call)).toBeUndefined();
    await release(grants);
    for (const name of [extra, ...names])
      expect(await redis.command('EXISTS', `lock::${name}`), name).toBe(0);
  });
});

describe('a holder whose lock is stolen', () => {
  it.each([
    ['exclusive', { kind: 'exclusive' }],
    ['shared', shared],
    ['a permit', permit(3, 2)],
  ] as const)('learns it at its next renewal, and frees nothing (%s)', async (_, mode) => {
    await using a = participant(redis);
    await using b = participant(redis);
    const name = fresh();
    const lost = await take(a, name, mode);
    const stolen = granted(await b.backend.attempt({ ...wanted(name, mode), steal: true }, false, call));
    expect(stolen.fencingToken).toBeGreaterThan(lost.fencingToken as bigint);
    expect(await a.backend.renew([{ grant: lost, ttlMs: 9_000 }], call)).toEqual([
      { status: 'lost', reason: 'taken-over' },
    ]);
    expect(await a.backend.release(lost, call)).toBe('not-held');
    expect(await b.backend.renew([{ grant: stolen, ttlMs: 9_000 }], call)).toEqual([{ status: 'held' }]);
    expect(await b.backend.release(stolen, call)).toBe('released');
  });
});

describe('minReplicas', () => {
  it('applies to shares, and to several at once', async () => {
    await using replicated = await startReplicated({ replicas: 1 });
    const [replica] = replicated.replicas as [RedisServer];
    await using a = participant(replicated.master, { minReplicas: 1, replicaTimeoutMs: 1000 });
    const name = fresh();
    const kept = await take(a, name, shared);
    await replica.pause();
    const failure = { name: 'ReplicationError', acknowledged: 0 };
    await expect(take(a, name, shared)).rejects.toMatchObject(failure);
    const requests = [wanted(fresh(), permit(2)), request(fresh())];
    await expect(a.backend.attemptMany?.(requests, call)).rejects.toMatchObject(failure);
    for (const { resource } of requests)
      expect((await a.backend.inspect(resource, call)).holders).toEqual([]);
    expect((await a.backend.inspect(name, call)).holders).toHaveLength(1);
    replica.resume();
    expect(await a.backend.release(kept, call)).toBe('released');
    expect(await a.backend.attemptMany?.(requests, call)).toHaveLength(2);
  });
});

describe('an unknown script', () => {
  it('is sent whole, for every kind of request', async () => {
    await using a = participant(redis);
    const name = fresh();
    const forgotten = async <T>(work: () => Promise<T> | undefined) => {
      await redis.command('SCRIPT', 'FLUSH');
      return work();
    };
    const grant = (await forgotten(() => take(a, name, permit(2)))) as Grant;
    const items = [{ grant, ttlMs: 9_000 }];
    expect(await forgotten(() => a.backend.renew(items, call))).toEqual([{ status: 'held' }]);
    expect(await forgotten(() => a.backend.resize?.(name, 3, call))).toEqual({ status: 'set' });
    expect(await forgotten(() => a.backend.release(grant, call))).toBe('released');
    const writer = await a.take(name);
    expect(await forgotten(() => a.backend.downgrade?.(writer, call))).toMatchObject({ status: 'held' });
    expect(await forgotten(() => a.backend.attemptMany?.([wanted(name, shared)], call))).toHaveLength(1);
  });
});
