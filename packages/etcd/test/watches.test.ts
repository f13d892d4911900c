import type { Duplex } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { call, deferred, freshName, request, take, useEtcd } from './fixture.ts';

const etcd = useEtcd();

test('no stream stays open, and keeps the process alive, when the server ended the last watch on it', async () => {
  const client = etcd.client();
  const streams: Duplex[] = [];
  const opening = deferred<void>();
  const mayOpen = deferred<void>();
  const { watchClient } = client;
  const open = watchClient.watch.bind(watchClient);
  watchClient.watch = async (...args) => {
    if (streams.length > 0) {
      opening.resolve();
      await mayOpen.promise;
    }
    const stream = await open(...args);
    streams.push(stream as unknown as Duplex);
    return stream;
  };
  const backend = etcd.open(client);
  const wanted = request(freshName());
  const grant = await take(backend, wanted);
  await vi.waitFor(() => expect(streams).toHaveLength(1), 5_000);
  // The connection breaks, and what happens meanwhile is compacted away.
  streams[0]?.emit('end');
  await opening.promise;
  const admin = etcd.client();
  await admin.delete().key(`locks/${wanted.resource}/${wanted.acquisitionId}`);
  const { header } = await admin.put('later').value('written');
  await admin.kv.compact({ revision: header.revision, physical: true });
  mayOpen.resolve();
  await vi.waitFor(() => expect(grant.lost?.aborted).toBe(true), 5_000);
  expect(grant.lost?.reason).toBe('force-released');
  await vi.waitFor(() => expect(streams[1]?.writableEnded).toBe(true), 5_000);
  expect(await backend.release(grant, call)).toBe('not-held');
});
