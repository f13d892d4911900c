import { isLockError } from '@locks/core';
import library from 'node-zookeeper-client';
import { expect, test } from 'vitest';
import { zookeeperBackend, type ZooKeeperBackendOptions } from '../src/index.ts';

const servers = '127.0.0.1:1';

test('bad options are refused at once, and the message names them', () => {
  const given = library.createClient(servers, { sessionTimeout: 1, spinDelay: 1, retries: 0 });
  const bad: readonly [string, unknown, unknown?][] = [
    ['client', {}],
    ['zookeeperBackend(client, { … })', { servers }],
    ['first argument', ''],
    ['first argument', 'a b'],
    ['servers', servers, { servers }],
    ['sessionTimeoutMs', given, { sessionTimeoutMs: 5_000 }],
    ['retries', library.createClient(servers, { sessionTimeout: 1, spinDelay: 1, retries: 3 })],
    ['sessionTimeoutMs', servers, { sessionTimeoutMs: 10 }],
    ['sessionTimeoutMs', servers, { sessionTimeoutMs: Number.NaN }],
    ['path', servers, { path: 'locks' }],
    ['path', servers, { path: '/' }],
    ['path', servers, { path: '/a//b' }],
    ['path', servers, { path: '/a/../b' }],
    ['path', servers, { path: '/a/:b' }],
    ['idleTtlMs', servers, { idleTtlMs: 0 }],
    ['connectTimeoutMs', servers, { connectTimeoutMs: '5' }],
    ['options', servers, null],
    ['zookeeperBackend', undefined],
  ];
  for (const [name, client, options] of bad) {
    let error: unknown;
    try {
      zookeeperBackend(client as string, options as ZooKeeperBackendOptions);
    } catch (caught) {
      error = caught;
    }
    expect(isLockError(error, 'LOCK_INVALID_ARGUMENT'), name).toBe(true);
    expect((error as Error).message).toContain(name);
  }
});

test('building and closing a backend opens no client', async () => {
  const backend = zookeeperBackend(servers, { setUpClient: () => expect.fail('it opened a client') });
  await backend.close();
});
