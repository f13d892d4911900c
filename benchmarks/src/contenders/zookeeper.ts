import library, { type Client } from 'node-zookeeper-client';
import { backends, done, zookeeper } from './clients.ts';
import { type Contender, foreign, ours } from './contender.ts';

const store = 'zookeeper';

/** The recipe of ZooKeeper's documentation by hand: create, list, watch the predecessor, list again, delete. No token. */
const rawRecipe = foreign({ store, name: 'raw recipe', kind: 'floor' }, zookeeper, (client) => {
  const parents = new Map<string, Promise<void>>();
  const parentOf = async (name: string): Promise<string> => {
    const parent = `/raw/${encodeURIComponent(name)}`;
    let made = parents.get(parent);
    if (made === undefined) parents.set(parent, (made = done((end) => client.mkdirp(parent, end))));
    await made;
    return parent;
  };
  return async (name) => {
    const parent = await parentOf(name);
    const path = await enter(client, parent);
    await untilFirst(client, parent, path.slice(parent.length + 1));
    return () => done((end) => client.remove(path, end));
  };
});

export const zookeeperContenders: readonly Contender[] = [
  rawRecipe,
  ours({ store, name: '@locks/zookeeper', floor: rawRecipe.name }, backends.zookeeper),
];

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
