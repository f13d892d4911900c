export { type FileCapabilities, fileBackend } from './file-backend.ts';
export { LockFolderError, type LockFolderErrorCode } from './lock-folder-error.ts';
export type { FileBackendOptions } from './options.ts';
export { fileResults } from './result-store.ts';
export { fileSlots } from './slot-store.ts';
