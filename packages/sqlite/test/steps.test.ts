import type { ResourceState } from '@locks/core/backend';
import { expect, test } from 'vitest';
import { acquire, call, open, request, rowsIn, take, until } from './fixture.ts';

test('a held resource is contended, and free again after the release', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a'));
  expect(await backend.attempt(request('a'), false, call)).toEqual({ status: 'contended' });
  expect(await backend.release(grant, call)).toBe('released');
  await take(backend, request('a'));
});

test('an attempt repeated with one id gives the same token and what is left of the same lease', async () => {
  const { backend } = open();
  const wanted = request('a', 5_000);
  const first = await take(backend, wanted);
  const again = await take(backend, wanted);
  expect(again.fencingToken).toBe(first.fencingToken);
  const end = again.countedFrom + (again.validForMs ?? Infinity);
  expect(end).toBeLessThanOrEqual(first.countedFrom + 5_000 + 50);
  expect(end).toBeGreaterThan(first.countedFrom);
});

test('only the owner releases and renews', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a'));
  const stranger = { ...grant, request: request('a') };
  expect(await backend.release(stranger, call)).toBe('not-held');
  expect(await backend.renew([{ grant: stranger, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.renew([{ grant, ttlMs: 1_000 }], call)).toEqual([{ status: 'held' }]);
});

test('an expired hold is not renewed, not released, and not in the way', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a', 20));
  await until(async () => (await backend.inspect('a', call)).holders.length === 0);
  expect(await backend.renew([{ grant, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'expired' },
  ]);
  const next = await take(backend, request('a'));
  expect(await backend.renew([{ grant, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.release(grant, call)).toBe('not-held');
  expect(next.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
  expect((await backend.inspect('a', call)).holders[0]?.acquisitionId).toBe(next.request.acquisitionId);
});

test('an expired hold answers not-held to its own release', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a', 20));
  await until(async () => (await backend.inspect('a', call)).holders.length === 0);
  expect(await backend.release(grant, call)).toBe('not-held');
});

test('a renewal never recreates what is absent, and says so for each of many leases', async () => {
  const { backend } = open();
  const grants = await Promise.all(Array.from({ length: 600 }, (_, n) => take(backend, request(`n${n}`))));
  await backend.release(grants[7] as never, call);
  const renewalStatuses = await backend.renew(
    grants.map((grant) => ({ grant, ttlMs: 60_000 })),
    call,
  );
  expect(renewalStatuses.filter(({ status }) => status === 'held')).toHaveLength(599);
  expect(renewalStatuses[7]).toEqual({ status: 'lost', reason: 'force-released' });
  expect((await backend.inspect('n7', call)).holders).toEqual([]);
  expect((await backend.inspect('n8', call)).holders[0]?.expiresInMs).toBeGreaterThan(50_000);
});

test('the lease in the file ends no earlier than its holder believes', async () => {
  const { backend } = open();
  const before = performance.now();
  const grant = await take(backend, request('a', 10_000));
  const [holder] = (await backend.inspect('a', call)).holders;
  const after = performance.now();
  expect(grant.countedFrom).toBeGreaterThanOrEqual(before);
  expect(after + (holder?.expiresInMs ?? 0)).toBeGreaterThanOrEqual(grant.countedFrom + 10_000);
});

test('an abandoned id neither holds nor waits, and the next in the queue gets its turn', async () => {
  const { backend } = open();
  const holder = request('a');
  await take(backend, holder);
  const gone = request('a');
  expect((await backend.attempt(gone, true, call)).status).toBe('contended');
  const next = acquire(backend, request('a'));
  await until(async () => (await backend.inspect('a', call)).waiters.length === 2);
  await backend.abandon(gone, call);
  await backend.abandon(holder, call);
  const grant = await next;
  expect(await backend.inspect('a', call)).toMatchObject({
    holders: [{ acquisitionId: grant.request.acquisitionId }],
    waiters: [],
  });
});

test('tokens rise over resources that leave nothing behind', async () => {
  const { backend } = open();
  let last = 0n;
  for (let n = 0; n < 50; n += 1) {
    const grant = await take(backend, request('a', 1_000));
    expect(grant.fencingToken).toBeGreaterThan(last);
    last = grant.fencingToken ?? 0n;
    await backend.release(grant, call);
  }
});

test('names that were released or expired leave nothing in the file', async () => {
  const { backend, path } = open();
  const grants = await Promise.all(
    Array.from({ length: 600 }, (_, n) => take(backend, request(`given back ${n}`))),
  );
  await Promise.all(grants.map((grant) => backend.release(grant, call)));
  expect(rowsIn(path)).toEqual({ holds: 0, waiters: 0, clients: 0 });
  for (let n = 0; n < 600; n += 1) await take(backend, request(`ran out ${n}`, 20));
  await until(async () => {
    await backend.release(await take(backend, request('others go on')), call);
    return rowsIn(path).holds === 0;
  });
});

test('a name is its bytes: unusual names do not collide and come back as they were', async () => {
  const { backend } = open();
  const names = [
    'a',
    'A',
    'a ',
    ' a',
    'a\0',
    'a\0b',
    '\n',
    'é',
    'e\u0301',
    '{a}',
    "'",
    '"',
    '%',
    '😀',
    'x'.repeat(512),
  ];
  for (const name of names) await take(backend, request(name));
  const listed: ResourceState[] = [];
  for await (const state of backend.list?.('', call) ?? []) listed.push(state);
  expect(listed.map(({ name }) => name).sort()).toEqual([...names].sort());
});

test('list pages through a prefix and nothing else', async () => {
  const { backend } = open();
  for (let n = 0; n < 150; n += 1) await take(backend, request(`job:${n}`));
  await take(backend, request('joa'));
  await take(backend, request('job;'));
  const listed: string[] = [];
  for await (const { name } of backend.list?.('job:', call) ?? []) listed.push(name);
  expect(listed).toHaveLength(150);
  expect(new Set(listed).size).toBe(150);
});

test('inspect shows holders and waiters with labels, in the order of service', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a', 5_000, 'holder'));
  await backend.attempt(request('a', 5_000, 'first'), true, call);
  await backend.attempt(request('a', 5_000, 'second'), true, call);
  const { holders, waiters } = await backend.inspect('a', call);
  expect(holders).toHaveLength(1);
  expect(holders[0]).toMatchObject({
    label: 'holder',
    fencingToken: grant.fencingToken,
    mode: { kind: 'exclusive' },
  });
  expect(holders[0]?.heldForMs).toBeGreaterThanOrEqual(0);
  expect(holders[0]?.expiresInMs).toBeLessThanOrEqual(5_000);
  expect(waiters.map(({ label }) => label)).toEqual(['first', 'second']);
});

test('forceRelease ends the given hold, shows it, and serves the next', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a'));
  expect(await backend.forceRelease?.('a', 'somebody-else', call)).toEqual([]);
  const next = acquire(backend, request('a'));
  await until(async () => (await backend.inspect('a', call)).waiters.length === 1);
  const ended = await backend.forceRelease?.('a', grant.request.acquisitionId, call);
  expect(ended).toMatchObject([
    { acquisitionId: grant.request.acquisitionId, fencingToken: grant.fencingToken },
  ]);
  await next;
  expect(await backend.release(grant, call)).toBe('not-held');
});
