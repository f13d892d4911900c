/**
 * A report that a Java application wrote until now, and that Node takes over: for a while both run, and whoever comes first writes
 * it. Java holds `redisson.getFencedLock("report")` meanwhile.
 */
import { createLocks } from '@locks/core';
import { type IoredisClient, redissonBackend } from '@locks/redisson/ioredis';

export interface ReportStore {
  isWritten(day: string): Promise<boolean>;
  /** A real one rejects a write with an older token, of Java or of Node. */
  write(day: string, text: string, token: bigint): Promise<void>;
}

export function reportWriter(redis: IoredisClient, store: ReportStore) {
  const locks = createLocks(redissonBackend(redis, { fencing: true }), { ttlMs: 30_000 });
  return {
    async write(day: string, render: (signal: AbortSignal) => Promise<string>): Promise<'written' | 'there'> {
      return locks.lock('report').run(
        async (lease) => {
          // Java may have written it while this process waited.
          if (await store.isWritten(day)) return 'there';
          await store.write(day, await render(lease.signal), lease.fencingToken);
          return 'written';
        },
        { waitMs: 60_000 },
      );
    },
    close: () => locks.close(),
  };
}
