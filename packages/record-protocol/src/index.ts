export { escapeKey, type KeyAlphabet, mayStartWith } from './escape-key.ts';
export { type AnswerHeaders, timeInHeaders } from './answer-time.ts';
export { clockOf, expiryOption, skewOption } from './clock-options.ts';
export { isNetworkError } from './network-errors.ts';
export type {
  RecordChange,
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
} from './create-record-backend.ts';
