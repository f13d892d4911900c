import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createLocks, type Lease, type LockManager } from '@locks/core';
import { fetchVersion, type RedisServer, startRedis, waitUntil, waitUntilLinked } from '@locks/test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import { libraries, type Library, openClient } from '../src/harnesses/redis/open-client.ts';

const OLD = fetchVersion('redis-7.0');
const NEW = [
  { version: 'redis-8.6', command: 'delex' },
  { version: 'valkey-9', command: 'delifeq' },
] as const;

afterEach(() => {
  delete process.env['LOCKS_SERVER_PATH'];
});

/** Which version the next start of a server takes. */
function use(programs: string): void {
  process.env['LOCKS_SERVER_PATH'] = programs;
}

async function locksOf(library: Library, { url }: { readonly url: string }) {
  const client = await openClient(library, { kind: 'standalone', url });
  const locks = createLocks(client.backend(), { waitMs: 20_000 });
  const close = async (): Promise<void> => {
    await locks.close();
    await client.end();
  };
  return Object.assign(locks, { [Symbol.asyncDispose]: close });
}

/** An address that leads to one server and then to another, as the one of a failover service does. */
async function movableAddress(first: RedisServer) {
  let target = first;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const to = connect({ port: target.port, host: '127.0.0.1', noDelay: true });
    for (const socket of [client, to]) {
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket);
          client.destroy();
          to.destroy();
        });
    }
    client.pipe(to).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    moveTo(next: RedisServer): void {
      target = next;
      cut();
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function takeAndRelease(locks: LockManager, times: number): Promise<void> {
  for (let turn = 0; turn < times; turn += 1) {
    const lease = await locks.lock('another').acquire();
    await lease.release();
  }
  expect((await locks.inspect('another')).holders).toEqual([]);
}

async function callsOf(server: RedisServer, command: string): Promise<number> {
  const line = (await server.info('commandstats'))[`cmdstat_${command}`] ?? '';
  return Number(/calls=(\d+)/.exec(line)?.[1] ?? 0);
}

describe.each(NEW)('a server that becomes $version and old again', ({ version, command }) => {
  it.each(libraries)(
    '%s: leases and waiters are kept, releases use its own command, and the script after it',
    async (library) => {
      const newer = fetchVersion(version);
      use(OLD);
      await using server = await startRedis();
      await using before = await locksOf(library, server);
      await using other = await locksOf(library, server);
      await takeAndRelease(before, 4);
      const held = await before.lock('kept').acquire();
      const waiting = other.lock('kept').acquire();
      await expect
        .poll(async () => (await before.inspect('kept')).waiters?.length, { timeout: 10_000 })
        .toBe(1);

      use(newer);
      await server.restart({ keepData: true });
      await held.renew();
      await using after = await locksOf(library, server);
      await takeAndRelease(after, 4);
      expect(await callsOf(server, command)).toBe(4);
      // Whoever came before the upgrade goes on with the script.
      await takeAndRelease(before, 4);
      expect(await callsOf(server, command)).toBe(4);
      await held.release();
      const handedOff = await waiting;
      expect(handedOff.fencingToken).toBeGreaterThan(held.fencingToken);
      await handedOff.release();

      use(OLD);
      await server.restart();
      await takeAndRelease(after, 4);
      await takeAndRelease(before, 4);
      const contended = await after.lock('kept').acquire();
      const next = before.lock('kept').acquire();
      await expect
        .poll(async () => (await after.inspect('kept')).waiters?.length, { timeout: 10_000 })
        .toBe(1);
      await contended.release();
      await (await next).release();
      expect((await after.inspect('kept')).holders).toEqual([]);
    },
    60_000,
  );
});

describe.each(NEW)('a failover from an old master to a replica that is $version', ({ version, command }) => {
  it.each(libraries)(
    '%s: leases, waiters and the order of tokens are kept, and the release finds out again',
    async (library) => {
      const newer = fetchVersion(version);
      use(OLD);
      await using master = await startRedis();
      use(newer);
      await using replica = await startRedis({ replicaOf: master });
      await waitUntilLinked(master, [replica]);
      await using address = await movableAddress(master);
      await using before = await locksOf(library, address);
      await using other = await locksOf(library, address);
      await takeAndRelease(before, 4);
      const held = await before.lock('kept').acquire();
      const waiting: Promise<Lease>[] = [];
      for (const locks of [other, before]) {
        waiting.push(locks.lock('kept').acquire());
        await expect
          .poll(async () => (await before.inspect('kept')).waiters?.length, { timeout: 10_000 })
          .toBe(waiting.length);
      }
      const values = () =>
        Promise.all([master, replica].map((server) => server.command('GET', 'lock::kept')));
      await waitUntil(async () => new Set(await values()).size === 1, {
        what: 'the replica to have the lock',
      });

      await replica.command('REPLICAOF', 'NO', 'ONE');
      await master.stop();
      address.moveTo(replica);
      await held.renew();
      expect((await before.inspect('kept')).waiters?.length).toBe(2);
      await using after = await locksOf(library, address);
      await takeAndRelease(after, 4);
      expect(await callsOf(replica, command)).toBe(4);
      const tokens = [held.fencingToken];
      await held.release();
      // After a failover the first to reconnect may come first.
      const turns = waiting.map(async (turn) => {
        const lease = await turn;
        tokens.push(lease.fencingToken as bigint);
        await lease.release();
      });
      await Promise.all(turns);
      for (const [at, token] of tokens.slice(1).entries())
        expect(token).toBeGreaterThan(tokens[at] as bigint);
      expect((await after.inspect('kept')).holders).toEqual([]);
      await takeAndRelease(before, 4);
    },
    60_000,
  );
});

it('a user without the right to the command releases with the script, and is refused once', async () => {
  use(fetchVersion('redis-8.6'));
  await using server = await startRedis();
  await server.command('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-delex');
  const url = server.url.replace('redis://', 'redis://app:secret@');
  const client = await openClient('redis-ioredis', { kind: 'standalone', url });
  const locks = createLocks(client.backend());
  await takeAndRelease(locks, 5);
  const refusals = (await server.command('ACL', 'LOG')) as readonly unknown[];
  expect(refusals).toHaveLength(1);
  await locks.close();
  await client.end();
});
