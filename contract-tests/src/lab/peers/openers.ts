import type { OpenPeer } from './peer-lock.ts';

/** The libraries of Node, one description for the lab and for `rollover`. A process loads the one that it needs. */
export const openers = {
  redlock: () => import('./redlock.ts'),
  'redlock-4': () => import('./redlock-4.ts'),
  'redlock-sesamecare': () => import('./redlock-sesamecare.ts'),
  'redlock-universal': () => import('./redlock-universal.ts'),
  'redis-semaphore': () => import('./redis-semaphore.ts'),
  'simple-redis-mutex': () => import('./simple-redis-mutex.ts'),
  'set-nx-px': () => import('./set-nx-px.ts'),
  verrou: () => import('./verrou.ts'),
} as const satisfies Readonly<Record<string, () => Promise<{ readonly open: OpenPeer }>>>;

export type PeerName = keyof typeof openers;
