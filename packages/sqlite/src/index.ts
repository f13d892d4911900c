export { SqliteFileError, type SqliteFileErrorCode } from './file-error.ts';
export { sqliteSlots } from './slot-store.ts';
export type { SqliteBackendOptions } from './options.ts';
export { sqliteResults } from './result-store.ts';
export { type SqliteCapabilities, sqliteBackend } from './sqlite-backend.ts';
