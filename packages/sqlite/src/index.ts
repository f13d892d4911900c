export { SqliteFileError, type SqliteFileErrorCode } from './file-error.ts';
export { type SqliteRecordOptions, sqliteRecord } from './once-record.ts';
export type { SqliteBackendOptions } from './options.ts';
export { type SqliteCapabilities, sqliteBackend } from './sqlite-backend.ts';
