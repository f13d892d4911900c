export { freshVersion } from './fresh-version.ts';
export type { LockRow } from './lock-row.ts';
export { decodedOr, MalformedRecordError } from './malformed-record.ts';
export {
  type LookScope,
  type LockTable,
  type RowConflict,
  type RowTake,
  type RowTaken,
  type RowWrite,
  type RowWritten,
  type Snapshot,
  type TablePace,
} from './lock-table.ts';
export { micros, type RowDecision } from './row-decision.ts';
export { decodeState, encodeSole, encodeState, timesFromWrite, untilFromWrite } from './state-json.ts';
export { SpentTokensError } from './spent-tokens-error.ts';
export { createTableBackend } from './kernel-backend.ts';
export { ownLimit, type TimeLimit, unhurried, URGENT, type Urgency } from './time-limit.ts';
