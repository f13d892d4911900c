export { checkHistory, type HistoryExpectation } from './check-history.ts';
export { HistoryError } from './history-error.ts';
export type { HistoryAction, HistoryEvent, HistoryEventType, HistoryMode } from './history-event.ts';
export type { HistoryOperation } from './history-operation.ts';
export { HistoryRecorder, type RecordableLease, type RecordedHold } from './history-recorder.ts';
export { historyToEdn } from './history-to-edn.ts';
export type { HistoryVerdict, HistoryViolation, HistoryViolationKind } from './history-verdict.ts';
export { parseHistory, readHistory } from './read-history.ts';
