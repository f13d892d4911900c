import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { startProxy } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { limit, openClient, openStore, refuse, server, startFront, textOf, write } from './fixture.ts';

describe('a provider', () => {
  it('that says 409 is asked again: nobody has won then', async () => {
    let conflicts = 0;
    await using front = await startFront(await server(), ({ headers, method, url = '' }, response) => {
      const isSwap = method === 'PUT' && headers['if-match'] !== undefined && url.includes('/locks/k');
      if (!isSwap || conflicts >= 2) return false;
      conflicts += 1;
      return refuse(response, 409, 'ConditionalRequestConflict');
    });
    const { store } = await openStore({ client: openClient(front) });
    const { version } = (await store.write(write('k', 'one'), limit())) as { version: string };
    expect((await store.write(write('k', 'two', version), limit())).status).toBe('written');
    expect(conflicts).toBe(2);
    expect(textOf((await store.read(['k'], limit())).records[0])).toBe('two');
  });

  it('that says 409 for ever is given up in time, and may be asked later', async () => {
    await using front = await startFront(await server(), ({ method, url = '' }, response) => {
      return method === 'PUT' && url.includes('/locks/k')
        ? refuse(response, 409, 'ConditionalRequestConflict')
        : false;
    });
    const { store } = await openStore({ client: openClient(front) });
    const error = await store.write(write('k', 'one'), limit(1_000)).catch((reason: unknown) => reason);
    expect(store.isRetryable(error)).toBe(true);
  });

  for (const header of ['if-none-match', 'if-match'] as const) {
    it(`that ignores ${header} is refused at the first write, and nothing is written`, async () => {
      await using front = await startFront(await server(), ({ headers }) => {
        delete headers[header];
        return false;
      });
      const { store } = await openStore({ client: openClient(front) });
      for (let tries = 0; tries < 2; tries += 1) {
        const error = await store.write(write('k', 'one'), limit()).catch((reason: unknown) => reason);
        expect((error as Error).message.toLowerCase()).toContain(`ignores ${header}`);
        expect(store.isRetryable(error)).toBe(false);
      }
      expect((await store.read(['k'], limit())).records).toEqual([undefined]);
    });
  }

  it('that tells no ETag is refused: the next write would have nothing to compare', async () => {
    const { store: real, bucket } = await openStore();
    await real.write(write('k', 'one'), limit());
    await using front = await startFront(await server(), (_request, response) => {
      const writeHead = response.writeHead.bind(response) as (status: number, headers: object) => void;
      Object.assign(response, {
        writeHead: (status: number, { etag: _etag, ...headers }: { etag?: string }) =>
          writeHead(status, headers),
      });
      return false;
    });
    const { store } = await openStore({ client: openClient(front), bucket });
    for (const asked of [store.read(['k'], limit()), store.write(write('new', 'one'), limit())]) {
      const error = await asked.catch((reason: unknown) => reason);
      expect((error as Error).message).toContain('tells no ETag');
      expect(store.isRetryable(error)).toBe(false);
    }
  });

  it('that writes an absent object in spite of if-match is refused, and keeps nothing of it', async () => {
    const { store: real, client: direct, bucket } = await openStore();
    await real.write(write('other', 'one'), limit());
    await using front = await startFront(await server(), ({ headers, url = '' }) => {
      if (url.includes('/locks/probe-')) delete headers['if-match'];
      return false;
    });
    const { store } = await openStore({ client: openClient(front), bucket });
    const error = await store.write(write('k', 'one'), limit()).catch((reason: unknown) => reason);
    expect((error as Error).message).toContain('ignores If-Match for an object that is not there');
    const { Contents = [] } = await direct.send(new ListObjectsV2Command({ Bucket: bucket }));
    expect(Contents.map(({ Key }) => Key).toSorted((a = '', b = '') => a.localeCompare(b))).toEqual([
      'locks/other',
      'locks/probe',
    ]);
  });

  it('that does not compare before it deletes gets no deletions: what is deleted becomes empty', async () => {
    let deletions = 0;
    await using front = await startFront(await server(), ({ headers, method, url = '' }) => {
      if (method === 'DELETE' && url.includes('/locks/k')) deletions += 1;
      if (method === 'DELETE') delete headers['if-match'];
      return false;
    });
    const { store } = await openStore({ client: openClient(front) });
    const { version } = (await store.write(write('k', 'one'), limit())) as { version: string };
    const { version: second } = (await store.write(write('k', 'two', version), limit())) as {
      version: string;
    };
    expect((await store.write(write('k', undefined, version), limit())).status).toBe('conflict');
    expect(textOf((await store.read(['k'], limit())).records[0])).toBe('two');
    expect((await store.write(write('k', undefined, second), limit())).status).toBe('written');
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
    const racers = Array.from({ length: 10 }, (_, index) => store.write(write('k', `${index}`), limit()));
    const written = (await Promise.all(racers)).filter(({ status }) => status === 'written');
    expect(written).toHaveLength(1);
    for await (const record of store.list('', limit())) expect(textOf(record)).not.toBe('');
    expect(deletions).toBe(0);
  });

  it('is tried once by a process, with four requests where another process was here before', async () => {
    const { bucket, store } = await openStore();
    await store.write(write('k', 'one'), limit());
    let requests = 0;
    await using front = await startFront(await server(), ({ url = '' }) => {
      if (url.includes('/locks/probe')) requests += 1;
      return false;
    });
    const client = openClient(front);
    const stores = await Promise.all([1, 2, 3].map(() => openStore({ client, bucket })));
    await Promise.all(stores.map(({ store: each }, index) => each.write(write(`k${index}`, 'v'), limit())));
    expect(requests).toBe(4);
  });
});

describe('what the network and the SDK do', () => {
  it('a write that the SDK repeats meets its own first sending, as a conflict with its own value', async () => {
    const client = openClient(await server());
    const { store, bucket } = await openStore({ client });
    await store.write(write('other', 'one'), limit());
    let losing = 1;
    client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        if (losing-- <= 0) return result;
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', $retryable: {} });
      },
      { step: 'deserialize', priority: 'low' },
    );
    const written = await store.write(write('k', 'mine'), limit());
    expect(written.status).toBe('conflict');
    expect(textOf((written as { present: { value: Uint8Array } }).present)).toBe('mine');
    expect(bucket).toBeDefined();
  });

  it('a silent server is given up with the signal of the request, and its sockets are free again', async () => {
    await using proxy = await startProxy(await server(), { protocol: 'raw' });
    const client = openClient({ url: `http://127.0.0.1:${proxy.port}` });
    const { store } = await openStore({ client });
    proxy.blackhole();
    const requests = Array.from({ length: 60 }, () => store.read(['k'], limit(300)));
    for (const result of await Promise.allSettled(requests)) {
      expect(result.status).toBe('rejected');
      expect(store.isRetryable((result as PromiseRejectedResult).reason)).toBe(true);
    }
    await proxy.heal();
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
    await store.close();
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
  });

  it('a denied access names the permissions', async () => {
    await using front = await startFront(await server(), ({ method, url = '' }, response) => {
      return method === 'GET' && url.includes('/locks/k') ? refuse(response, 403, 'AccessDenied') : false;
    });
    const { store } = await openStore({ client: openClient(front) });
    const error = await store.read(['k'], limit()).catch((reason: unknown) => reason);
    expect((error as Error).message).toMatch(/s3:GetObject.*s3:ListBucket/);
    expect(store.isRetryable(error)).toBe(false);
  });
});
