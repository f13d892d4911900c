import type { StoreName } from './store-url.ts';
import { UsageError } from './usage-error.ts';

/** The adapter and the client of each store. The user installs those of the stores that he uses. */
const PACKAGES: Readonly<Record<StoreName, readonly string[]>> = {
  redis: ['@locks/redis-ioredis', 'ioredis'],
  postgres: ['@locks/postgres', 'pg'],
  mysql: ['@locks/mysql', 'mysql2'],
  etcd: ['@locks/etcd', 'etcd3'],
  zookeeper: ['@locks/zookeeper', 'node-zookeeper-client'],
  sqlite: ['@locks/sqlite'],
  file: ['@locks/file'],
  dynamodb: ['@locks/dynamodb', '@aws-sdk/client-dynamodb'],
  s3: ['@locks/s3', '@aws-sdk/client-s3'],
  nats: ['@locks/nats', '@nats-io/transport-node'],
  mongodb: ['@locks/mongodb', 'mongodb'],
  kubernetes: ['@locks/kubernetes', '@kubernetes/client-node'],
};

/** Calls `load`, which imports the packages of a store. @throws UsageError where one is not installed */
export function withPackagesOf<T>(store: StoreName, load: () => Promise<T>): Promise<T> {
  return withPackages(store, PACKAGES[store], load);
}

/**
 * Calls `load`, which imports packages that the user installs.
 *
 * @param what - what needs them, for the message
 * @throws UsageError with the command that installs them, where one is not installed
 */
export async function withPackages<T>(
  what: string,
  packages: readonly string[],
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const missing = /Cannot find package '([^']+)'/.exec(message)?.[1];
    if (code !== 'ERR_MODULE_NOT_FOUND' || missing === undefined) throw error;
    throw new UsageError(
      `${what} needs ${missing}, which is not installed beside @locks/cli: npm install ${packages.join(' ')}`,
    );
  }
}
