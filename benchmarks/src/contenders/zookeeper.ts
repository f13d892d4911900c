import { once } from 'node:events';
import { createLocks } from '@locks/core';
import { zookeeperBackend } from '@locks/zookeeper';
import library, { type Client } from 'node-zookeeper-client';
import type { Contender } from './contender.ts';
import { oursContender } from './locks.ts';

const SESSION_MS = 10_000;

/** The recipe of ZooKeeper's documentation by hand: create, list, watch the predecessor, list again, delete. No token. */
const rawZookeeper: Contender = {
  store: 'zookeeper',
  name: 'raw recipe',
  kind: 'floor',
  floor: 'raw recipe',
  packages: ['node-zookeeper-client'],
  async open(url) {
    const client = await connect(url);
    const parents = new Map<string, Promise<void>>();
    const parentOf = async (name: string): Promise<string> => {
      const parent = `/raw/${encodeURIComponent(name)}`;
      let made = parents.get(parent);
      if (made === undefined) parents.set(parent, (made = done((end) => client.mkdirp(parent, end))));
      await made;
      return parent;
    };
    return {
      async acquire(name) {
        const parent = await parentOf(name);
        const path = await enter(client, parent);
        await untilFirst(client, parent, path.slice(parent.length + 1));
        return () => done((end) => client.remove(path, end));
      },
      ping: () => done((end) => client.exists('/', end)),
      close: async () => client.close(),
    };
  },
};

const locksZookeeper: Contender = oursContender({
  store: 'zookeeper',
  name: '@locks/zookeeper',
  floor: 'raw recipe',
  packages: ['@locks/zookeeper', 'node-zookeeper-client'],
  async openLocks(url, ttlMs) {
    const client = await connect(url);
    const locks = createLocks(zookeeperBackend({ client }), { ttlMs });
    return {
      locks,
      ping: () => done((end) => client.exists('/', end)),
      close: async () => {
        await locks.close();
        client.close();
      },
    };
  },
});

export const zookeeperContenders: readonly Contender[] = [rawZookeeper, locksZookeeper];

async function connect(url: string): Promise<Client & Parameters<typeof zookeeperBackend>[0]['client']> {
  const client = library.createClient(url, { sessionTimeout: SESSION_MS });
  const connected = once(client as unknown as NodeJS.EventEmitter, 'connected');
  client.connect();
  await connected;
  return client as Client & Parameters<typeof zookeeperBackend>[0]['client'];
}

async function enter(client: Client, parent: string): Promise<string> {
  const mode = library.CreateMode.EPHEMERAL_SEQUENTIAL;
  return await done<string>((end) => client.create(`${parent}/n-`, Buffer.alloc(0), mode, end));
}

async function untilFirst(client: Client, parent: string, own: string): Promise<void> {
  for (;;) {
    const names = await done<readonly string[]>((end) => client.getChildren(parent, end));
    // All nodes have the same prefix, and the server pads the numbers.
    const before = names
      .filter((name) => name < own)
      .sort()
      .at(-1);
    if (before === undefined) return;
    await new Promise<void>((resolve, reject) => {
      client.exists(`${parent}/${before}`, resolve, (error, stat) => {
        if (error) reject(error);
        else if (!stat) resolve();
      });
    });
  }
}

function done<T = void>(
  send: (end: (error: Error | null | undefined, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    send((error, value) => {
      if (error) reject(error);
      else resolve(value as T);
    });
  });
}
