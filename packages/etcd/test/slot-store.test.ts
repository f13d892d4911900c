import type { SlotEntry } from '@locks/core/backend';
import type { Etcd3, ITxnRequest } from 'etcd3';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, test } from 'vitest';
import { etcdSlots, etcdResults } from '../src/index.ts';
import { freshName, sendTwice, useEtcd } from './fixture.ts';

/** A token beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint): SlotEntry => ({
  ...{ slot: `of ${token}`, state: 'done', token, label: 'é', at: 1_900_000_000_000 },
});
const isWrite = ({ success }: ITxnRequest): boolean =>
  success?.some((operation) => operation.request_put !== undefined) ?? false;

describe('etcdSlots and etcdResults', () => {
  const etcd = useEtcd();

  test('of many writers at once the one with the highest token is kept, and jobs do not mix', async () => {
    const job = `${freshName()}/%`;
    const stores = Array.from({ length: 8 }, () => etcdSlots(etcd.client()));
    const written = await Promise.all(stores.map((slots, at) => slots.write(job, entry(TOKEN + BigInt(at)))));
    expect(written[7]).toBe(true);
    expect(await stores[0]?.read(job)).toEqual({ entry: entry(TOKEN + 7n), storeTime: undefined });
    expect((await stores[0]?.read(`${job}a`))?.entry).toBeUndefined();
  });

  test('a write whose answer was lost is written once more, and hides no entry that came between', async () => {
    const job = freshName();
    const other = etcdSlots(etcd.client());
    const client = etcd.client();
    const slots = etcdSlots(client);
    sendTwice(client, isWrite);
    expect(await slots.write(job, entry(1n))).toBe(true);
    expect((await other.read(job)).entry).toEqual(entry(1n));
    sendTwice(client, isWrite, () => other.write(job, entry(3n)));
    expect(await slots.write(job, entry(2n))).toBe(false);
    expect((await other.read(job)).entry).toEqual(entry(3n));
  });

  test('a late result replaces none under a newer token that came between its read and its write', async () => {
    const key = freshName();
    const client = etcd.client();
    const other = etcdResults(etcd.client());
    sendTwice(client, isWrite, () => other.set(key, 'newer', 3n, 60_000));
    await expect(etcdResults(client).set(key, 'late', 2n, 60_000)).rejects.toMatchObject({
      ...{ code: 'LOCK_LOST', reason: 'taken-over' },
    });
    expect(await other.get(key)).toBe('newer');
  });

  test('the server ends a result, also one whose writer is gone, and keeps its token', async () => {
    const key = freshName();
    const client = etcd.client();
    await etcdResults(client).set(key, 'x', 2n, 1_000);
    const reader = etcdResults(etcd.client());
    expect(await reader.get(key)).toBe('x');
    await waitUntil(async () => (await reader.get(key)) === undefined, { what: 'the end of the result' });
    await expect(reader.set(key, 'late', 1n, 1_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    // The token outlives its result by an hour at least, and by no more than the process may need.
    const [fence] = (await client.kv.range({ key: Buffer.from(`locks/result-token/${key}`) })).kvs;
    const { TTL } = await client.leaseClient.leaseTimeToLive({ ID: fence?.lease as string });
    expect(Number(TTL)).toBeGreaterThan(3_600);
  });

  test('leases that an administrator has revoked cost one more try', async () => {
    const [first, second] = [freshName(), freshName()];
    const client = etcd.client();
    const results = etcdResults(client);
    await results.set(first, 'x', 1n, 60_000);
    const [fence] = (await client.kv.range({ key: Buffer.from(`locks/result-token/${first}`) })).kvs;
    await client.leaseClient.leaseRevoke({ ID: fence?.lease as string });
    await results.set(second, 'y', 1n, 60_000);
    expect(await results.get(second)).toBe('y');
  });

  test.each([[undefined], [{}], [{ hosts: 'http://127.0.0.1:1' }]])(
    'refuse the client %j at once',
    (client) => {
      for (const make of [etcdSlots, etcdResults])
        expect(() => make(client as unknown as Etcd3)).toThrow(
          expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
        );
    },
  );
});
