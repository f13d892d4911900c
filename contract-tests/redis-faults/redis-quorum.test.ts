import { createLocks } from '@locks/core';
import { quorumBackend } from '@locks/quorum';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { libraries, openClient } from '../src/harnesses/redis/open-client.ts';
import Lab from './lab.ts';

const TTL_MS = 5_000;

describe.concurrent.each(libraries)('a quorum of three servers with %s', { timeout: 30_000 }, (library) => {
  it('acquires again on a server that came back empty, so that another one may restart empty later', async () => {
    await using lab = new Lab();
    const servers = await Promise.all([lab.server(), lab.server(), lab.server()]);
    const quorum = async (ttlMs: number) => {
      const clients = await Promise.all(
        servers.map(({ host, port }) =>
          openClient(library, { kind: 'standalone', url: `redis://${host}:${port}` }),
        ),
      );
      for (const client of clients) lab.defer(() => client.end());
      return lab.use(createLocks(quorumBackend(clients.map((client) => client.backend())), { ttlMs }));
    };
    const holder = await quorum(TTL_MS);
    const lease = await holder.lock('a').acquire();
    const rival = await quorum(TTL_MS);
    for (const server of servers) {
      await server.kill();
      await server.restart();
      const has = async () => String(await server.command('GET', 'lock::a')).startsWith(lease.acquisitionId);
      await waitUntil(has, { what: 'the lease on the server' });
      // The answers of a connection come in order: the holder has that of its attempt behind this one.
      await holder.inspect('a');
      await lease.renew();
      // Its connections to restarted servers may not be back yet.
      await expect(rival.lock('a').acquire({ waitMs: 200 })).rejects.toMatchObject({
        code: expect.stringMatching(/^LOCK_(TIMEOUT|BACKEND)$/),
      });
    }
    lease.assertValid();
    await lease.release();
    for (const server of servers) {
      const isGone = async () => (await server.command('EXISTS', 'lock::a')) === 0;
      await waitUntil(isGone, { what: 'the release on a server' });
    }
    await (await rival.lock('a').acquire()).release();
  });
});
