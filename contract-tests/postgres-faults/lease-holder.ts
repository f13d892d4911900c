/** The main module of a process that acquires locks of the lease table and keeps them. */
import { createLocks, type LockOptions } from '@locks/core';
import { postgresLeaseBackend } from '@locks/postgres';

export interface HolderOrder {
  readonly name: string;
  readonly waitMs: number;
}

export type HolderMessage =
  | { readonly token: string; readonly acquisitionId: string }
  | { readonly error: string };

const [, , connectionString = '', lockOptions = '{}'] = process.argv;
const locks = createLocks(postgresLeaseBackend({ connectionString }), JSON.parse(lockOptions) as LockOptions);
process.on('disconnect', () => process.exit());
process.on('message', ({ name, waitMs }: HolderOrder) => {
  void locks
    .lock(name)
    .acquire({ waitMs })
    .then(
      ({ fencingToken, acquisitionId }) => ({ token: String(fencingToken), acquisitionId }),
      (error: unknown) => ({ error: String(error) }),
    )
    .then((message: HolderMessage) => process.send?.(message));
});
// The first statement also makes the schema: not while a test measures.
await locks.lock('warm').run(() => undefined, { waitMs: 15_000 });
process.send?.('ready');
