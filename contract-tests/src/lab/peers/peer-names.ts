/** The libraries of Node with a description in this folder, for the lab and for `rollover`. */
export type PeerName =
  | 'redlock'
  | 'redlock-4'
  | 'redlock-sesamecare'
  | 'redlock-universal'
  | 'redis-semaphore'
  | 'simple-redis-mutex'
  | 'set-nx-px'
  | 'verrou';
