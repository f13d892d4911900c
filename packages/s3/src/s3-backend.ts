import type { S3Client } from '@aws-sdk/client-s3';
import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { checkOptions, type S3BackendOptions } from './options.ts';
import { S3Store } from './s3-store.ts';

// setup: import { S3Client } from '@aws-sdk/client-s3'; import { createLocks } from '@locks/core'; import { s3Backend } from '@locks/s3';
/**
 * Locks in a bucket of Amazon S3, or of a compatible store that honours `If-None-Match` and `If-Match`. Does no I/O; the first call
 * that writes tries whether the store honours them.
 *
 * @param client - a client of `@aws-sdk/client-s3`, which the backend never destroys
 * @example
 * ```ts
 * const client = new S3Client({});
 * const locks = createLocks(s3Backend(client, { bucket: 'my-locks' }));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function s3Backend(client: S3Client, options: S3BackendOptions): LockBackend<RecordCapabilities> {
  // The store's own prefix: its characters stay as they are, for policies and lifecycle rules.
  return createRecordBackend(new S3Store(checkOptions(client, options)), { prefix: '' });
}
