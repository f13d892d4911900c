import { createLocks, type LockError, type LockManager } from '@locks/core';
import { type RedisServer, sendCommands, startCluster, startSentinel, waitUntil } from '@locks/test-servers';
import { Cluster, Redis } from 'ioredis';
import { redisBackend } from '@locks/redis-ioredis';
import { describe, expect, it } from 'vitest';
import { failure } from '../src/fault-lab/observe.ts';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import Lab from './lab.ts';

const PASSWORD = 'secret';
/** Less than clients pause between two logins, once some were refused. */
const WAIT_MS = 300;
/** Until every client pauses for longer than that. */
const CALLS = 15;

const kinds = ['standalone', 'cluster', 'sentinel'] as const;
const cases = libraries.flatMap((library) => kinds.map((kind) => ({ library, kind })));

interface Deployment {
  readonly address: RedisAddress;
  readonly data: readonly RedisServer[];
  setPassword(): Promise<void>;
}

async function deploy(lab: Lab, kind: RedisAddress['kind']): Promise<Deployment> {
  if (kind === 'standalone') {
    const server = await lab.server();
    const { url } = server;
    return { address: { kind, url }, data: [server], setPassword: () => requirePassword([server]) };
  }
  if (kind === 'cluster') {
    const { nodes, roots, stop } = await startCluster().then((cluster) => {
      return { nodes: cluster.nodes, roots: cluster.roots, stop: () => cluster.stop() };
    });
    lab.defer(stop);
    return { address: { kind, roots }, data: nodes, setPassword: () => requirePassword(nodes) };
  }
  const deployment = lab.use(await startSentinel());
  const { name, nodes } = deployment;
  const sentinels = deployment.sentinels.map(({ host, port }) => ({ host, port }));
  const setPassword = async (): Promise<void> => {
    // Without the password they would take the master for dead.
    for (const sentinel of deployment.sentinels)
      await sentinel.command('SENTINEL', 'SET', name, 'auth-pass', PASSWORD);
    await requirePassword(nodes);
  };
  return { address: { kind, name, sentinels }, data: nodes, setPassword };
}

async function requirePassword(servers: readonly RedisServer[]): Promise<void> {
  for (const server of servers) {
    await sendCommands(server, [
      ['CONFIG', 'SET', 'masterauth', PASSWORD],
      ['CONFIG', 'SET', 'requirepass', PASSWORD],
    ]);
  }
}

/** Clients that are logged in stay so until they connect anew. */
async function cutClients(servers: readonly RedisServer[]): Promise<void> {
  for (const server of servers) {
    const kill = ['CLIENT', 'KILL', 'TYPE'];
    await sendCommands(
      server,
      [
        [...kill, 'normal'],
        [...kill, 'pubsub'],
      ],
      { password: PASSWORD },
    );
  }
}

async function messageOf(call: Promise<unknown>): Promise<string> {
  const { code, message } = (await failure(call)) as LockError;
  expect(code).toBe('LOCK_BACKEND');
  return message;
}

const NAMED = 'NOAUTH: the server requires a password, and the client gave none';

async function expectRefusals(locks: LockManager): Promise<void> {
  const acquire = () => messageOf(locks.lock('b').acquire({ waitMs: WAIT_MS }));
  // Until the client has tried to connect again.
  await waitUntil(async () => (await acquire()).includes(NAMED), { what: 'the refusal' });
  for (let calls = 0; calls < CALLS; calls += 1) expect(await acquire()).toContain(NAMED);
  expect(await messageOf(locks.lock('b').tryAcquire())).toContain(NAMED);
  expect(await messageOf(locks.inspect('b'))).toContain(NAMED);
  expect(await messageOf(locks.ping())).toContain(NAMED);
}

describe.concurrent('a server that requires a password', { timeout: 60_000 }, () => {
  // Sentinel's client of `redis` stays ready, and reports no error, while its connection to the master is refused.
  const reporting = cases.filter(({ library, kind }) => library !== 'redis-node' || kind !== 'sentinel');
  it.each(reporting)(
    'is named to a client without one, set while connected: $library, $kind',
    async (one) => {
      await using lab = new Lab(one.library);
      const { address, data, setPassword } = await deploy(lab, one.kind);
      const locks = await lab.locks(address);
      const lease = await locks.lock('a').acquire({ ttlMs: 60_000 });
      await setPassword();
      expect((await locks.inspect('a')).holders).toHaveLength(1);
      await cutClients(data);
      await expectRefusals(locks);
      expect(await messageOf(lease.renew())).toContain(NAMED);
      expect(await messageOf(lease.release())).toContain(NAMED);
      // The client connects again by itself, and everything works as before.
      for (const server of data)
        await sendCommands(server, [['CONFIG', 'SET', 'requirepass', '']], { password: PASSWORD });
      const works = () =>
        locks
          .lock('b')
          .tryAcquire()
          .then(Boolean, () => false);
      await waitUntil(works, { what: 'a lock without a password' });
    },
  );

  it.each(kinds)('is named to an ioredis client that never had one: %s', async (kind) => {
    await using lab = new Lab('redis-ioredis');
    const { address, setPassword } = await deploy(lab, kind);
    await setPassword();
    await expectRefusals(await lab.locks(address));
  });

  it('is named to an ioredis client whose errors nobody listens to, by the first call that the client refuses', async () => {
    await using lab = new Lab('redis-ioredis');
    const server = await lab.server({ password: PASSWORD });
    const client = new Redis({ host: server.host, port: server.port });
    lab.defer(() => client.disconnect());
    await expectRefusals(lab.use(createLocks(redisBackend(client))));
    expect(client.listenerCount('error')).toBe(0);
  });

  it('is waited for by an ioredis cluster client: its list is not empty before it has connected', async () => {
    await using lab = new Lab('redis-ioredis');
    const { address } = await deploy(lab, 'cluster');
    await (await lab.locks(address)).lock('a').acquire();
    const client = new Cluster(address.kind === 'cluster' ? [...address.roots] : []);
    lab.defer(() => client.disconnect());
    const found: string[] = [];
    for await (const { name } of lab.use(createLocks(redisBackend(client))).list()) found.push(name);
    expect(found).toEqual(['a']);
  });

  it.each(cases)('is warned of once where a wait can open no subscription: $library, $kind', async (one) => {
    await using lab = new Lab(one.library);
    const { address, setPassword } = await deploy(lab, one.kind);
    const warnings: string[] = [];
    const warned = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', warned);
    lab.defer(async () => void process.off('warning', warned));
    const locks = await lab.locks(address);
    const held = await locks.lock('a').acquire();
    await setPassword();
    const entered = locks.lock('a').acquire();
    // Other tests of this file warn as well.
    await waitUntil(() => warnings.some((text) => text.startsWith('Late hand-offs: NOAUTH: ')), {
      what: 'the warning',
    });
    await held.release();
    await (await entered).release();
  });
});
