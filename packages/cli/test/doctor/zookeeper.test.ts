import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { type ZooKeeperServer, startZookeeper, startZookeeperEnsemble } from '@locks/test-servers';
import { zookeeperBackend } from '@locks/zookeeper';
import { createLocks } from '@locks/core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { diagnose, severities } from './diagnose.ts';

/** Of all tests that need no settings of their own. */
let server: ZooKeeperServer;
const started: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(() => server.stop());
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

function digestOf(user: string, password: string): string {
  return `${user}:${createHash('sha1').update(`${user}:${password}`).digest('base64')}`;
}

/** The library has no types of its own. */
interface AclClasses {
  readonly ACL: new (permission: number, id: unknown) => unknown;
  readonly Id: new (scheme: string, id: string) => unknown;
  readonly Permission: { readonly ALL: number };
}

interface Client {
  readonly CreateMode: { readonly EPHEMERAL: number; readonly PERSISTENT: number };
  createClient(address: string): {
    once(event: 'connected', listener: (value: unknown) => void): void;
    connect(): void;
    create(path: string, mode: number, done: (error: unknown) => void): void;
    close(): void;
  };
}

/** Makes the tree of the locks for a user with a password. */
async function closeTree(): Promise<void> {
  const { ACL, Id, Permission } = createRequire(import.meta.url)('node-zookeeper-client') as AclClasses;
  const rights = [new ACL(Permission.ALL, new Id('digest', digestOf('owner', 'secret')))];
  const locks = createLocks(
    zookeeperBackend(server.address, {
      path: '/closed',
      acl: rights,
      setUpClient: (client) => client.addAuthInfo('digest', Buffer.from('owner:secret')),
    }),
  );
  await (await locks.lock('first').acquire()).release();
  await locks.close();
}

describe('locks doctor on ZooKeeper', () => {
  it('finds nothing where nothing is wrong', async () => {
    const ensemble = await startZookeeperEnsemble();
    started.push(ensemble);
    expect(await diagnose(`zookeeper://${ensemble.servers}`)).toEqual({
      store: 'zookeeper',
      version: expect.stringMatching(/^3\.\d+/) as string,
      findings: [],
    });
    await ensemble.members[2]?.kill();
    expect(severities(await diagnose(`zookeeper://${ensemble.servers}`))).toEqual({
      'zookeeper/member-down': 'warning',
    });
  });

  it('zookeeper/standalone: one server alone', async () => {
    expect(severities(await diagnose(`zookeeper://${server.address}`))).toEqual({
      'zookeeper/standalone': 'warning',
    });
  });

  it.each([
    [{ 'zookeeper/session-timeout': 'error' }, ['maxSessionTimeout=4000']],
    [{ 'zookeeper/session-timeout': 'warning' }, ['minSessionTimeout=20000']],
    [{ 'zookeeper/tick': 'warning' }, ['tickTime=4000']],
  ])('%j with %s', async (expected, config) => {
    const own = await startZookeeper({ config });
    started.push(own);
    expect(severities(await diagnose(`zookeeper://${own.address}`))).toEqual({
      'zookeeper/standalone': 'warning',
      ...expected,
    });
  });

  it('zookeeper/layout: another version laid out the locks', async () => {
    const { createClient, CreateMode } = createRequire(import.meta.url)('node-zookeeper-client') as Client;
    const client = createClient(server.address);
    const connected = new Promise((resolve) => client.once('connected', resolve));
    client.connect();
    await connected;
    for (const path of ['/newer', '/newer/::layout']) {
      const made = new Promise((resolve) => client.create(path, CreateMode.PERSISTENT, resolve));
      expect(await made).toBeNull();
    }
    client.close();
    // A marker without a number is none that this version has written.
    expect(
      severities(await diagnose(`zookeeper://${server.address}`, { args: ['--prefix', '/newer'] })),
    ).toMatchObject({
      'zookeeper/layout': 'error',
    });
  });

  it('zookeeper/trial: the tree of the locks is a node that may have no children', async () => {
    const { createClient, CreateMode } = createRequire(import.meta.url)('node-zookeeper-client') as Client;
    const client = createClient(server.address);
    const connected = new Promise((resolve) => client.once('connected', resolve));
    client.connect();
    await connected;
    const made = new Promise((resolve) => client.create('/childless', CreateMode.EPHEMERAL, resolve));
    expect(await made).toBeNull();
    expect(
      severities(await diagnose(`zookeeper://${server.address}`, { args: ['--prefix', '/childless'] })),
    ).toEqual({
      'zookeeper/standalone': 'warning',
      'zookeeper/trial': 'error',
    });
    client.close();
  });

  it('zookeeper/acl: the tree of the locks belongs to another user', async () => {
    await closeTree();
    expect(
      severities(await diagnose(`zookeeper://${server.address}`, { args: ['--prefix', '/closed'] })),
    ).toEqual({
      'zookeeper/standalone': 'warning',
      'zookeeper/acl': 'error',
    });
  });
});
