export * from './types.ts';
export {
  type ConnectionPool,
  ConnectionQueue,
  type ConnectionRequest,
  PRIORITIES,
  type Priority,
} from './connection-queue.ts';
export {
  matching,
  milliseconds,
  oneOf,
  optional,
  type OptionReader,
  type OptionsRead,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from './read-options.ts';
export { type LocalWaiter, LocalWaiters, type LocalWaitersOptions } from './local-waiters.ts';
export { areInConflict, Capacity } from './modes.ts';
export {
  type OnceRecord,
  readSlotEntry,
  refuseNewerSlotEntry,
  type SlotEntry,
  slotEntryText,
} from './once-record.ts';
export type { ResultStore } from './result-store.ts';
export { closedError, refuseAfterClose } from './refuse-after-close.ts';
export { answerWithin, MAX_TIMEOUT_MS, NoAnswerError, withTimeLimit } from './time-limit.ts';
export { TurnWait } from './turn-wait.ts';
export { checkBackend } from './validate.ts';
export { freshAcquisitionId } from '../acquire/acquisition-id.ts';
export { CombinedClock } from '../lifetime/clock.ts';
export { renewalStatusOf } from '../lifetime/renewal-status.ts';
export { invalidArgument, mustBe } from '../errors.ts';
