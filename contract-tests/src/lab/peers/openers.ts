import type { OpenPeer } from './peer-lock.ts';
import type { PeerName } from './peer-names.ts';

/** A process loads the library that it needs. */
export const openers: Readonly<Record<PeerName, () => Promise<{ readonly open: OpenPeer }>>> = {
  redlock: () => import('./redlock.ts'),
  'redlock-4': () => import('./redlock-4.ts'),
  'redlock-sesamecare': () => import('./redlock-sesamecare.ts'),
  'redlock-universal': () => import('./redlock-universal.ts'),
  'redis-semaphore': () => import('./redis-semaphore.ts'),
  'simple-redis-mutex': () => import('./simple-redis-mutex.ts'),
  'set-nx-px': () => import('./set-nx-px.ts'),
  verrou: () => import('./verrou.ts'),
};
