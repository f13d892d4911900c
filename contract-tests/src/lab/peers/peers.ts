import { type LabBackend, redisSettings, single, singleRedis } from '../deployments.ts';
import type { PeerName, PeerOptions } from './peer-lab.ts';

const TTL_MS = 1_000;

/** Other libraries in the lab, on one Redis server: what users would pick instead. */
export const peers: Readonly<Record<string, LabBackend>> = Object.fromEntries(
  (['redlock', 'redis-semaphore', 'verrou'] as const).map((peer) => [peer, onRedis(peer)]),
);

function onRedis(peer: PeerName): LabBackend {
  const options: PeerOptions = { peer, ttlMs: TTL_MS };
  return {
    ...singleRedis,
    ...single('src/lab/peers/peer-lab.ts', redisSettings),
    modes: ['exclusive'],
    workloads: ['mutex', 'lock-set'],
    hasTokens: false,
    options,
    ttlMs: TTL_MS,
  };
}
