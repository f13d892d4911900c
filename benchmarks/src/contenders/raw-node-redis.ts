import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { connectNodeRedis } from './connect.ts';
import { COMPARE_AND_DELETE, type Contender, POLL_MS, TTL_MS } from './contender.ts';

const options = { condition: 'NX', expiration: { type: 'PX', value: TTL_MS } } as const;

export const rawNodeRedis: Contender = {
  store: 'redis',
  name: 'raw node-redis',
  kind: 'floor',
  floor: 'raw node-redis',
  packages: ['redis'],
  async open(url) {
    const client = await connectNodeRedis(url);
    const sha1 = await client.scriptLoad(COMPARE_AND_DELETE);
    return {
      async acquire(name) {
        const id = randomUUID();
        while ((await client.set(name, id, options)) === null) await delay(POLL_MS);
        return () => client.evalSha(sha1, { keys: [name], arguments: [id] });
      },
      ping: () => client.ping(),
      close: async () => client.destroy(),
    };
  },
};
