export const capabilities = {
  tenure: 'session',
  renewal: 'own-client',
  reach: 'network',
  modes: ['exclusive', 'shared'],
  order: 'fifo',
  fencing: 'durable',
  // A ttl ends nothing: holds end with their session.
  ttl: { minMs: 1, stepMs: 1 },
  features: ['list', 'waiters', 'force-release'],
} as const;

/** The type of the capabilities of the ZooKeeper backend. */
export type ZooKeeperCapabilities = typeof capabilities;
