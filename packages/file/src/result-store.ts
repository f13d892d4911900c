import type { ResultStore } from '@locks/core/backend';
import { resultsIn } from '@locks/record-protocol/once';
import { FileStore } from './file-store.ts';
import { checkOptions, type FileBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { fileBackend, fileResults } from '@locks/file';
// setup: declare function refreshToken(signal: AbortSignal): Promise<string>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: the folder of the locks, or another one, for all processes of a machine. A
 * result ends by the clock of the machine, and with a restart. It is readable for whoever may read the folder.
 *
 * @param folder - as that of `fileBackend`
 * @example
 * ```ts
 * const locks = createLocks(fileBackend('./locks'));
 * const options = { store: fileResults('./locks'), shareForMs: 60_000 };
 * const token = await coalesce(locks, 'token', ({ signal }) => refreshToken(signal), options);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; `set` rejects with `LOCK_LOST` and reason `taken-over` when a newer token wrote before
 */
export function fileResults(folder: string, options?: FileBackendOptions): ResultStore {
  const what = 'fileResults()';
  return resultsIn(new FileStore(checkOptions(folder, options, what)), '', what);
}
