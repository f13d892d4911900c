import type { Duplex } from 'node:stream';
import type { Grant } from '@locks/core/backend';
import type { Etcd3, IWatchRequest } from 'etcd3';
import { describe, expect, test, vi } from 'vitest';
import { call, callFor, Counted, deferred, freshName, request, take, useEtcd } from './fixture.ts';

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
  await admin.delete().key(`locks//${wanted.resource}/${wanted.acquisitionId}`);
  const { header } = await admin.put('later').value('written');
  await admin.kv.compact({ revision: header.revision, physical: true });
  mayOpen.resolve();
  await vi.waitFor(() => expect(grant.lost?.aborted).toBe(true), 5_000);
  expect(grant.lost?.reason).toBe('force-released');
  await vi.waitFor(() => expect(streams[1]?.writableEnded).toBe(true), 5_000);
  expect(await backend.release(grant, call)).toBe('not-held');
});

describe('the watch of a waiter behind another process', () => {
  /** The requests to create a watch that a client sends; `mayCreate` holds them back. */
  function watchesOf(client: Etcd3, mayCreate: Promise<void>): { start_revision?: unknown }[] {
    const created: { start_revision?: unknown }[] = [];
    const { watchClient } = client;
    const open = watchClient.watch.bind(watchClient);
    watchClient.watch = async (...args) => {
      const stream = await open(...args);
      const write = stream.write.bind(stream);
      stream.write = (message: IWatchRequest): void => {
        if (message.create_request === undefined) return write(message);
        created.push(message.create_request);
        mayCreate.then(
          () => write(message),
          () => {},
        );
      };
      return stream;
    };
    return created;
  }

  test('starts at the present, and misses nothing that was deleted before', async () => {
    const client = etcd.client();
    const mayCreate = deferred<void>();
    const created = watchesOf(client, mayCreate.promise);
    // No heartbeat, whose check would find it too, comes before the end of the wait.
    const [holder, backend] = [etcd.open(), etcd.open(client, { waiterTtlMs: 30_000 })];
    const name = freshName();
    const first = await take(holder, request(name));
    const wanted = request(name);
    expect((await backend.attempt(wanted, true, call)).status).toBe('contended');
    const turn = backend.awaitTurn(wanted, callFor(3_500));
    await vi.waitFor(() => expect(created).toHaveLength(1), 5_000);
    await holder.release(first, call);
    mayCreate.resolve();
    const grant = await turn;
    expect(grant?.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    // A server looks for watches that start in the past only ten times a second.
    expect(created[0]?.start_revision).toBeUndefined();
    await backend.release(grant as Grant, call);
  });

  test('learns of what is deleted after writes elsewhere, and reads its key once for them', async () => {
    const counted = new Counted(etcd.client());
    const mayCreate = deferred<void>();
    const created = watchesOf(counted.client, mayCreate.promise);
    const [holder, backend, admin] = [etcd.open(), etcd.open(counted.client), etcd.client()];
    const name = freshName();
    const first = await take(holder, request(name));
    const wanted = request(name);
    expect((await backend.attempt(wanted, true, call)).status).toBe('contended');
    const turn = backend.awaitTurn(wanted, callFor(4_000));
    await vi.waitFor(() => expect(created).toHaveLength(1), 5_000);
    await admin.put('elsewhere').value('written');
    counted.take();
    mayCreate.resolve();
    await vi.waitFor(() => expect(counted.take()).toEqual({ txn: 1 }), 5_000);
    await holder.release(first, call);
    const grant = await turn;
    expect(grant).toBeDefined();
    await backend.release(grant as Grant, call);
  });
});
