export { SqliteFileError, type SqliteFileErrorCode } from './file-error.ts';
export {
  type SqliteOnceRecord,
  type SqliteRecordOptions,
  type SqliteSlotEntry,
  sqliteRecord,
} from './once-record.ts';
export type { SqliteBackendOptions } from './options.ts';
export { type SqliteCapabilities, sqliteBackend } from './sqlite-backend.ts';
