import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { FileStore } from './file-store.ts';
import { checkOptions, type FileBackendOptions } from './options.ts';

/** The type of the capabilities of the file backend. */
export type FileCapabilities = RecordCapabilities<'host'>;

// setup: import { createLocks } from '@locks/core'; import { fileBackend } from '@locks/file';
// setup: declare function work(): Promise<void>;
/**
 * Locks in plain files of one folder, shared by all processes of a machine. The folder is made and looked at by the first call.
 *
 * @example
 * ```ts
 * const locks = createLocks(fileBackend('./locks'));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @param folder - a folder of its own, on a local disk, made when it is missing. Every process that shares locks names the same folder.
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function fileBackend(folder: string, options?: FileBackendOptions): LockBackend<FileCapabilities> {
  return createRecordBackend(new FileStore(checkOptions(folder, options)), { prefix: '' });
}
