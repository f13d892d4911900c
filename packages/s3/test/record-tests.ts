import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { limit, NASTY_KEYS, openClient, openStore, type server, textOf, write } from './fixture.ts';

/**
 * What every implementation of S3 must do for the store.
 *
 * @param racing - how many race for a record: SeaweedFS lets those that it refuses wait for a second each
 */
export function recordTests(start: typeof server, racing: number): void {
  const open = async (options = {}) => openStore({ client: openClient(await start()), ...options });

  it('are written where the version is the expected one, and read as they are', async () => {
    const { store } = await open();
    const first = await store.write(write('k', 'one'), limit());
    expect(first.status).toBe('written');
    const { version } = first as { version: string };
    const again = await store.write(write('k', 'two'), limit());
    expect(again).toMatchObject({ status: 'conflict', present: { version } });
    const second = await store.write(write('k', 'two', version), limit());
    expect(second.status).toBe('written');
    const late = await store.write(write('k', 'three', version), limit());
    expect(late.status).toBe('conflict');
    const { records } = await store.read(['k', 'absent', 'k'], limit());
    expect(records.map(textOf)).toEqual(['two', undefined, 'two']);
    expect(records[0]?.version).toBe((second as { version: string }).version);
  });

  it('are deleted with the expected version only; a write that expects one then finds none', async () => {
    const { store } = await open();
    const { version } = (await store.write(write('k', 'one'), limit())) as { version: string };
    const wrong = '"11111111111111111111111111111111"';
    expect((await store.write(write('k', undefined, wrong), limit())).status).toBe('conflict');
    expect((await store.write(write('k', undefined, version), limit())).status).toBe('written');
    expect((await store.write(write('k', 'two', version), limit())).status).toBe('conflict');
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
    expect((await store.write(write('k', 'two'), limit())).status).toBe('written');
  });

  it('one of many racers wins, each time, also to make it and to make it again', async () => {
    const { store } = await open();
    for (let round = 0; round < 3; round += 1) {
      let version: string | undefined;
      for (let step = 0; step < 3; step += 1) {
        const racers = Array.from({ length: racing }, (_, index) =>
          store.write(write('k', `${round}.${step}.${index}`, version), limit()),
        );
        const written = (await Promise.all(racers)).filter(({ status }) => status === 'written');
        expect(written).toHaveLength(1);
        ({ version } = written[0] as { version: string });
      }
      expect((await store.write(write('k', undefined, version), limit())).status).toBe('written');
    }
  });

  it('have a new version with each new value', async () => {
    const { store } = await open();
    const versions = new Set<unknown>();
    let version: string | undefined;
    for (let round = 0; round < 6; round += 1) {
      const written = await store.write(write('k', `value ${round}`, version), limit());
      ({ version } = written as { version: string });
      versions.add(version);
      if (round % 3 === 2) {
        await store.write(write('k', undefined, version), limit());
        version = undefined;
      }
    }
    expect(versions.size).toBe(6);
  });

  it('keep keys of any kind apart, in names that begin with the prefix', async () => {
    const { store, client, bucket } = await open({ prefix: 'app/Locks_1/' });
    for (const key of NASTY_KEYS)
      expect((await store.write(write(key, key), limit())).status).toBe('written');
    const { records } = await store.read(NASTY_KEYS, limit());
    expect(records.map(textOf)).toEqual(NASTY_KEYS);
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
    expect(Contents).toHaveLength(NASTY_KEYS.length + 1);
    for (const { Key = '' } of Contents) expect(Key.startsWith('app/Locks_1/')).toBe(true);
  });

  it('are listed by what their keys begin with, those of long names too', async () => {
    const { store } = await open();
    for (const key of NASTY_KEYS) await store.write(write(key, key), limit());
    await store.write(write('client/1', 'client/1'), limit());
    const list = async (prefix: string) => {
      const listed: string[] = [];
      for await (const record of store.list(prefix, limit())) listed.push(textOf(record) ?? '');
      return listed;
    };
    expect((await list('lock/')).sort()).toEqual([...NASTY_KEYS].sort());
    for (const prefix of ['lock/a', 'lock/a/', `lock/${'/'.repeat(100)}`]) {
      const wanted = NASTY_KEYS.filter((key) => key.startsWith(prefix));
      expect(await list(prefix)).toEqual(expect.arrayContaining(wanted));
    }
  });

  it('are as large as is said', async () => {
    const { store } = await open();
    const largest = 'v'.repeat(store.maxValueBytes);
    expect((await store.write(write('k', largest), limit())).status).toBe('written');
    expect(textOf((await store.read(['k'], limit())).records[0])?.length).toBe(largest.length);
  });

  it('tell the time of the Date header, also where they are refused; holds end by it unless another expiry is chosen', async () => {
    const { store, client, bucket } = await open({ skewMs: 500 });
    expect(store.clock).toEqual({ stepMs: 1_000, skewMs: 500, endsHolds: true });
    const before = client.middlewareStack.identify();
    const answers = [
      await store.write(write('k', 'one'), limit()),
      await store.write(write('k', 'two'), limit()),
      await store.read(['k'], limit()),
      await store.read(['absent'], limit()),
    ];
    for (const { now = Number.NaN } of answers) {
      expect(now % 1_000).toBe(0);
      expect(Math.abs(now - Date.now())).toBeLessThan(5_000);
    }
    expect(client.middlewareStack.identify()).toEqual(before);
    const { store: other } = await openStore({ client, bucket, expiry: 'observed' });
    expect(other.clock.endsHolds).toBe(false);
    expect(await other.read(['k'], limit())).toHaveProperty('now');
  });

  it('say that their bucket is missing, and what to do', async () => {
    const { store } = await open({ bucket: 'not-there' });
    for (const call of [() => store.read(['k'], limit()), () => store.write(write('k', 'v'), limit())]) {
      const error = await call().catch((reason: unknown) => reason);
      expect((error as Error).message).toMatch(/no bucket "not-there".*Create it/);
      expect(store.isRetryable(error)).toBe(false);
    }
  });
}
