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
