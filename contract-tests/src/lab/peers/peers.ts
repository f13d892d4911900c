import { type LabBackend, single } from '../deployments.ts';
import { redisSettings, singleRedis } from '../lab-backends.ts';
import type { PeerOptions } from './peer-lab.ts';
import type { PeerName } from './peer-names.ts';
import { buildRedisson, redissonWorker } from './redisson.ts';

const TTL_MS = 1_000;

const onRedis = {
  ...singleRedis,
  ...single('src/lab/peers/peer-lab.ts', redisSettings),
  modes: ['exclusive'],
  workloads: ['mutex', 'lock-set'],
  ttlMs: TTL_MS,
} as const;

/** Other libraries in the lab, on one Redis server: what users would pick instead. */
export const peers: Readonly<Record<string, LabBackend>> = {
  redlock: peer('redlock'),
  'redlock-universal': peer('redlock-universal'),
  'redis-semaphore': peer('redis-semaphore'),
  verrou: peer('verrou'),
  redisson: redisson(false),
  'redisson-fenced': redisson(true),
};

function peer(name: PeerName): LabBackend {
  const options: PeerOptions = { peer: name, ttlMs: TTL_MS };
  return { ...onRedis, hasTokens: false, options };
}

function redisson(isFenced: boolean): LabBackend {
  const options = { ttlMs: TTL_MS, isFenced };
  return { ...onRedis, hasTokens: isFenced, options, missing: buildRedisson, worker: redissonWorker };
}
