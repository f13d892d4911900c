export { escapeKey, type KeyAlphabet, mayStartWith } from './escape-key.ts';
export { isNetworkError } from './network-errors.ts';
export type {
  RecordClock,
  RecordPace,
  RecordsRead,
  RecordStore,
  RecordVersion,
  RecordWrite,
  RecordWritten,
  RequestLimit,
  StoredRecord,
} from './record-store.ts';
export {
  createRecordBackend,
  prefixOption,
  type RecordBackendOptions,
  type RecordCapabilities,
} from './record-backend.ts';
