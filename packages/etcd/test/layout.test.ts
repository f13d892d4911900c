import { createLocks } from '@locks/core';
import type { Etcd3 } from 'etcd3';
import { expect, it } from 'vitest';
import { call, callFor, Counted, request, useEtcd } from './fixture.ts';

const etcd = useEtcd();
let count = 0;
/** A prefix that no other test uses. */
const fresh = () => `layouts/${++count}/`;

const markerOf = (client: Etcd3, prefix: string) => client.get(`${prefix}//layout`).string();
const keysBelow = (client: Etcd3, prefix: string) => client.getAll().prefix(prefix).keys();

it.each([
  ['newer', '2', 'NEWER_SCHEMA', 'upgrade this process'],
  ['older', '0', 'OLDER_SCHEMA', 'stop all processes of the older version, then delete the key layouts/'],
])('a store with a %s layout is refused at once, and nothing is written', async (_, found, code, toDo) => {
  const [prefix, client] = [fresh(), etcd.client()];
  await client.put(`${prefix}//layout`).value(found);
  await using locks = createLocks(etcd.open(undefined, { prefix }));
  const refusal = { code: 'LOCK_BACKEND', cause: { name: 'StoreLayoutError', code } };
  await expect(locks.lock('a').acquire({ waitMs: 60_000 })).rejects.toMatchObject(refusal);
  await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refusal);
  await expect(
    locks.all([locks.lock('a'), locks.lock('b')]).acquire({ waitMs: 60_000 }),
  ).rejects.toMatchObject(refusal);
  await expect(locks.semaphore('s', 2).resize(3)).rejects.toMatchObject(refusal);
  const refused: unknown = await locks.forceRelease('a').catch((error: unknown) => error);
  expect(refused).toMatchObject(refusal);
  expect(String(refused).toLowerCase()).toContain(toDo);
  expect(await keysBelow(client, prefix)).toEqual([`${prefix}//layout`]);
});

it('the first process marks the layout, others read the marker once, and no list shows it', async () => {
  const [prefix, client] = [fresh(), etcd.client()];
  const first = etcd.open(undefined, { prefix });
  expect((await first.attempt(request('a'), false, call)).status).toBe('granted');
  expect(await markerOf(client, prefix)).toBe('1');
  const counted = new Counted(client);
  const second = etcd.open(client, { prefix });
  await Promise.all(['b', 'c', 'd'].map((name) => second.attempt(request(name), false, call)));
  expect(counted.take()['range']).toBe(1);
  await second.attempt(request('e'), false, call);
  expect(counted.take()['range']).toBeUndefined();
  const listed: string[] = [];
  for await (const { name } of first.list('', call)) listed.push(name);
  expect(listed).toEqual(['a', 'b', 'c', 'd', 'e']);
});

it('of two processes that come first at once both go on', async () => {
  const prefix = fresh();
  const backends = [etcd.open(undefined, { prefix }), etcd.open(undefined, { prefix })];
  const attempts = backends.map((backend, index) => backend.attempt(request(`${index}`), false, call));
  for (const { status } of await Promise.all(attempts)) expect(status).toBe('granted');
});

it('a running process goes on where the marker was deleted; one that was refused does then', async () => {
  const [prefix, client] = [fresh(), etcd.client()];
  const running = etcd.open(undefined, { prefix });
  await running.attempt(request('a'), false, call);
  await client.put(`${prefix}//layout`).value('2');
  const refused = etcd.open(undefined, { prefix });
  await expect(refused.attempt(request('b'), false, call)).rejects.toMatchObject({ code: 'NEWER_SCHEMA' });
  await client.delete().key(`${prefix}//layout`);
  expect((await running.attempt(request('c'), false, call)).status).toBe('granted');
  expect((await refused.attempt(request('b'), false, call)).status).toBe('granted');
});

it('who only looks needs no marker, and creates none', async () => {
  const [prefix, client] = [fresh(), etcd.client()];
  const backend = etcd.open(undefined, { prefix });
  expect((await backend.inspect('a', call)).holders).toEqual([]);
  expect(await keysBelow(client, prefix)).toEqual([]);
});

it('an attempt whose caller has gone before the marker was read takes no lock', async () => {
  const prefix = fresh();
  const backend = etcd.open(undefined, { prefix });
  const gone = { ...callFor(60_000), signal: AbortSignal.abort() };
  expect((await backend.attempt(request('a'), false, gone)).status).toBe('contended');
  expect((await backend.inspect('a', call)).holders).toEqual([]);
});
