import { randomBytes } from 'node:crypto';
import { startProxy, waitUntil } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { ForeignLeaseError } from '../src/kube-error.ts';
import { bytes, describeOnKubernetes, put, valueOf, within, writeOf } from './store-on-server.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const NASTY = [
  'a/b',
  '..',
  '.',
  'end.',
  'two\nlines',
  '🔒',
  ' spaces ',
  '*',
  '>',
  'UPPER',
  'upper',
  'a--b',
  '\0',
  'ä'.repeat(256),
];

let last = 0;
const freshKey = (): string => `locks/lock/key-${(last += 1)}`;

describeOnKubernetes('records as Leases', [], (on) => {
  it('lets one of twenty make a record', async () => {
    const key = freshKey();
    const [one, two] = [await on.open(), await on.open()];
    const racers = Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? one : two).write(writeOf(key, `racer ${index}`), within),
    );
    const outcomes = await Promise.all(racers);
    const winners = outcomes.flatMap((outcome, index) => (outcome.status === 'written' ? [index] : []));
    expect(winners).toHaveLength(1);
    expect(await valueOf(await on.open(), key)).toBe(`racer ${winners[0]}`);
  });

  it('lets one of twenty write in a version', async () => {
    const key = freshKey();
    const store = await on.open();
    const version = await put(store, key, 'first');
    const racers = Array.from({ length: 20 }, (_, index) =>
      store.write(writeOf(key, `racer ${index}`, version), within),
    );
    const statuses = (await Promise.all(racers)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 'written')).toHaveLength(1);
  });

  it('lets one of twenty delete a record, or write it', async () => {
    const key = freshKey();
    const store = await on.open();
    const version = await put(store, key, 'first');
    const racers = Array.from({ length: 20 }, (_, index) =>
      store.write(writeOf(key, index % 2 === 0 ? undefined : `racer ${index}`, version), within),
    );
    const statuses = (await Promise.all(racers)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 'written')).toHaveLength(1);
  });

  it('never writes in a version of a record that was deleted, and makes none', async () => {
    const key = freshKey();
    const store = await on.open();
    const old = await put(store, key, 'first');
    await put(store, key, undefined, old);
    // With a resource version and without a uid, an API server makes the Lease.
    expect(await store.write(writeOf(key, 'late', old), within)).toMatchObject({ status: 'conflict' });
    expect(await valueOf(store, key)).toBeUndefined();
    expect(await store.write(writeOf(key, undefined, old), within)).toEqual({
      status: 'conflict',
      present: 'absent',
    });
  });

  it('gives a record that is made again a version that it never had', async () => {
    const key = freshKey();
    const store = await on.open();
    const seen = new Set<unknown>();
    for (let round = 0; round < 3; round += 1) {
      const made = await put(store, key, 'made');
      const changed = await put(store, key, 'changed', made);
      seen.add(made).add(changed);
      for (const old of seen) {
        if (old === changed) continue;
        expect((await store.write(writeOf(key, 'late', old as string), within)).status).toBe('conflict');
        expect((await store.write(writeOf(key, undefined, old as string), within)).status).toBe('conflict');
      }
      await put(store, key, undefined, changed);
    }
    expect(seen.size).toBe(6);
  });

  it('keeps keys of any text apart', async () => {
    const store = await on.open();
    const keys = NASTY.map((name) => `locks/lock/${name}`);
    await Promise.all(keys.map((key) => put(store, key, `of ${key}`)));
    const { records } = await store.read(keys, within);
    expect(records.map((record) => record && Buffer.from(record.value).toString())).toEqual(
      keys.map((key) => `of ${key}`),
    );
  });

  it('keeps text as text, and other bytes too', async () => {
    const store = await on.open();
    const values = {
      text: bytes('{"label":"ö\u0000\ufeff"}'),
      bom: bytes('\ufeffx'),
      binary: randomBytes(1_000),
      none: bytes(''),
    };
    for (const [name, value] of Object.entries(values)) {
      await put(store, `locks/value/${name}`, value);
      const { records } = await store.read([`locks/value/${name}`], within);
      expect(Buffer.from(records[0]?.value ?? [1])).toEqual(Buffer.from(value));
    }
    const { metadata } = await on.server.ask<{ metadata: { annotations: Record<string, string> } }>(
      'GET',
      `${LEASES}/locks.value.text`,
    );
    expect(metadata.annotations['locks/value']).toBe('{"label":"ö\u0000\ufeff"}');
  });

  it('takes values of the length that it states, of any bytes', async () => {
    const store = await on.open();
    const key = `locks/lock/${'ä'.repeat(256)}-long`;
    const version = await put(store, key, randomBytes(store.maxValueBytes));
    await put(store, key, 'a'.repeat(store.maxValueBytes), version);
    await expect(store.write(writeOf(freshKey(), 'a'.repeat(300_000)), within)).rejects.toThrow(
      /too long|invalid/i,
    );
  });

  it('lists the records below a prefix, over several pages', async () => {
    const store = await on.open();
    const names = Array.from({ length: 300 }, (_, index) => `locks/listed/${index} ä`);
    for (const some of [names.slice(0, 150), names.slice(150)])
      await Promise.all(some.map((key) => put(store, key, key)));
    await put(store, 'locks/other/1', 'not listed');
    const found = async (prefix: string) => {
      const values: string[] = [];
      for await (const { value } of store.list(prefix, within)) values.push(Buffer.from(value).toString());
      return values.sort();
    };
    expect(await found('locks/listed/')).toEqual(names.toSorted());
    expect(await found('locks/listed/29')).toEqual(
      names.filter((name) => name.startsWith('locks/listed/29')).sort(),
    );
    expect(await found('locks/')).toEqual(expect.arrayContaining([...names, 'not listed']));
    expect(await found('elsewhere/')).toEqual([]);
  });

  it('leaves a Lease of something else alone', async () => {
    const store = await on.open();
    await on.server.ask('POST', LEASES, {
      metadata: { name: 'locks.lock.foreign' },
      spec: { holderIdentity: 'x' },
    });
    await expect(store.read(['locks/lock/foreign'], within)).rejects.toThrow(ForeignLeaseError);
    expect(await store.write(writeOf('locks/lock/foreign', 'mine'), within)).toEqual({ status: 'conflict' });
  });

  it('tells of a connection that is down, and goes on when it is back', async () => {
    await using proxy = await startProxy(on.server, { protocol: 'raw' });
    const store = await on.open({ at: { url: `https://${proxy.host}:${proxy.port}` } });
    const key = freshKey();
    await put(store, key, 'kept');
    proxy.cut();
    proxy.refuse();
    const failure = await store.read([key], within).catch((error: unknown) => error);
    expect(store.isRetryable(failure)).toBe(true);
    expect(store.connectionError()).toMatchObject({ code: expect.stringMatching(/ECONN/) });
    await proxy.heal();
    // A connection that was cut while it was idle may fail once more.
    const value = await waitUntil(() => valueOf(store, key).catch(() => undefined), { what: 'an answer' });
    expect(value).toBe('kept');
    expect(store.connectionError()).toBeUndefined();
  });

  it('gives up a request that gets no answer', async () => {
    await using proxy = await startProxy(on.server, { protocol: 'raw' });
    const store = await on.open({ at: { url: `https://${proxy.host}:${proxy.port}` } });
    const key = freshKey();
    await put(store, key, 'there');
    proxy.blackhole();
    const soon = { timeoutMs: 200, signal: AbortSignal.timeout(200) };
    const failure = await store.read([freshKey()], soon).catch((error: unknown) => error);
    expect(store.isRetryable(failure)).toBe(true);
    await proxy.heal();
    // The request that was given up took its connection along.
    expect(await valueOf(store, key)).toBe('there');
  });

  it('has a request repeated while the API server is away', async () => {
    const store = await on.open();
    const key = freshKey();
    await put(store, key, 'kept');
    await on.server.kill();
    const failure = await store.read([key], within).catch((error: unknown) => error);
    expect(store.isRetryable(failure)).toBe(true);
    await on.server.restart();
    expect(await valueOf(store, key)).toBe('kept');
  });
});
