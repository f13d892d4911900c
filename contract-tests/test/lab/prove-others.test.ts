import { type Proof, type ProveOptions, prove } from '@locks/prove';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PeerName } from '../../src/lab/peers/peer-names.ts';

const TTL_MS = 1_000;
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

function provePeer(peer: PeerName, options: Partial<ProveOptions>): Promise<Proof> {
  const module = new URL('../../src/lab/peers/proven-peer.ts', import.meta.url).href;
  const { host, port } = server;
  const store = { module, argument: { peer, at: { host, port }, ttlMs: TTL_MS } };
  return prove({ store, ttlMs: TTL_MS, seed: 5, ...options });
}

const broken = ({ promises }: Proof): string[] =>
  promises.filter(({ verdict }) => verdict === 'broken').map(({ id }) => id);

it('redis-semaphore is convicted: a holder that stood still is not told in time', async () => {
  const proof = await provePeer('redis-semaphore', { runMs: 20_000, faults: ['long-pause', 'block'] });
  expect(broken(proof)).toContain('exclusion');
});

it('redlock keeps holders apart, and its short waits do not end while the network is silent', async () => {
  const proof = await provePeer('redlock', { runMs: 15_000, faults: ['one-way'], suite: true });
  // The suite is for backends.
  expect(proof.suite).toBeUndefined();
  expect(broken(proof)).toEqual(['waits']);
});

it('a store that forgets is convicted', async () => {
  const client = new Redis(server.port, server.host);
  const forgetting = setInterval(() => void client.flushall(), 700);
  try {
    const module = new URL('../fixtures/proven-redis.ts', import.meta.url).href;
    const store = { module, argument: { host: server.host, port: server.port } };
    const proof = await prove({ store, runMs: 8_000, seed: 5, faults: ['late'] });
    expect(broken(proof)).toContain('exclusion');
    expect(proof.kept).toBe(false);
  } finally {
    clearInterval(forgetting);
    client.disconnect();
  }
});
