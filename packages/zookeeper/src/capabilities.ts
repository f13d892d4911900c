export const capabilities = {
  tenure: 'session',
  reach: 'network',
  modes: ['exclusive', 'shared'],
  order: 'fifo',
  fencing: 'durable',
  // Nothing ends by a ttl here.
  ttl: { minMs: 1, stepMs: 1 },
  features: ['list', 'waiters', 'force-release'],
} as const;

/** What the backend can do. */
export type ZooKeeperCapabilities = typeof capabilities;
