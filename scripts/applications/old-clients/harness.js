import { defineHarness, delegate } from '@locks/core/conformance';
import { redisBackend } from '@locks/redis-ioredis';
import process from 'node:process';

const library = process.env.LOCKS_IOREDIS ?? 'ioredis';
const { Redis } = await import(library);

export const harness = defineHarness({
  module: import.meta.url,
  name: `redis-ioredis on ${library}`,
  createBackend: () => backendOn(process.env.REDIS_URL),
  createBackendUnder: (prefix) => backendOn(process.env.REDIS_URL, { prefix }),
  faults: {
    wire: {
      servers() {
        const { hostname, port } = new URL(process.env.REDIS_URL);
        return [{ host: hostname, port: Number(port) }];
      },
      createBackend: ([proxy]) => backendOn(`redis://${proxy.host}:${proxy.port}`),
    },
    async onOwnClient() {
      const client = new Redis(process.env.REDIS_URL);
      return { backend: redisBackend(client), closeClient: async () => client.disconnect() };
    },
    async evict(resource) {
      const client = new Redis(process.env.REDIS_URL);
      await client.del(`lock::${resource}`);
      client.disconnect();
    },
    async corrupt(resource) {
      const client = new Redis(process.env.REDIS_URL);
      await client.set(`lock::${resource}`, 'of another program');
      client.disconnect();
    },
  },
  timing: { idleGapMs: 3_000, slackMs: 500 },
});

function backendOn(url, options) {
  const client = new Redis(url);
  let backend;
  try {
    backend = redisBackend(client, options);
  } catch (error) {
    client.disconnect();
    throw error;
  }
  return delegate(backend, {
    async close() {
      await backend.close();
      client.disconnect();
    },
  });
}
