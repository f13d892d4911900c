import type { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from '../harnesses/redis/address.ts';

/** The key of a resource (docs/backends/redis.md). */
export function lockKey(resource: string): string {
  const encoded = /[{}]|%(?:25|7B|7D)/.test(resource)
    ? resource.replace(/[%{}]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    : resource;
  return `lock::${encoded}`;
}

export async function versionOf(address: RedisAddress): Promise<string> {
  const info = await withAdmin(address, (admin) => admin.info('server'));
  // The Redis version of a Valkey is the one that it is compatible with.
  const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
  if (valkey !== undefined) return `Valkey ${valkey}`;
  return `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? 'of unknown version'}`;
}

/** Runs commands as an administrator would, on a connection of its own. */
export async function withAdmin<T>(
  address: RedisAddress,
  act: (admin: Redis | Cluster) => Promise<T>,
): Promise<T> {
  const { ioredisClient } = await import('../harnesses/redis/open-ioredis.ts');
  const admin = ioredisClient(address);
  try {
    return await act(admin);
  } finally {
    admin.disconnect();
  }
}
