import { isLockError } from '@locks/core';
import { expect, expectTypeOf, test } from 'vitest';
// Only the types: the package is not compiled here.
import type ZooKeeper from 'zookeeper';
import { type NativeBackendOptions, type NativeLibrary, zookeeperBackend } from '../src/native.ts';

test('the option library takes the class of the package', () => {
  expectTypeOf<typeof ZooKeeper>().toExtend<NativeLibrary>();
});

test('bad options are refused at once, and the message names them', () => {
  const servers = '127.0.0.1:1';
  const library = class {} as unknown as NativeLibrary;
  const bad: readonly [string, unknown, unknown?][] = [
    ['library', servers],
    ['client', { library }],
    ['client', {}],
    ['servers', servers, { library, servers }],
    ['sessionTimeoutMs', servers, { library, sessionTimeoutMs: -1 }],
  ];
  for (const [name, client, options] of bad) {
    let error: unknown;
    try {
      zookeeperBackend(client as string, options as NativeBackendOptions);
    } catch (caught) {
      error = caught;
    }
    expect(isLockError(error, 'LOCK_INVALID_ARGUMENT'), name).toBe(true);
    expect((error as Error).message).toContain(name);
  }
});
