export * from './types.ts';
export {
  type ConnectionPool,
  ConnectionQueue,
  type ConnectionRequest,
  PRIORITIES,
  type Priority,
} from './connection-queue.ts';
export { abortSignal } from './abort-signal.ts';
export { checkManager } from './check-manager.ts';
export { defaultLabel } from './default-label.ts';
export {
  matching,
  milliseconds,
  nearest,
  oneOf,
  optional,
  type OptionReader,
  type OptionsRead,
  type OptionTable,
  readClient,
  readOptions,
  text,
  wholeNumber,
} from './read-options.ts';
export { type LocalWaiter, LocalWaiters, type LocalWaitersOptions } from './local-waiters.ts';
export { grantFault } from './grant-fault.ts';
export { areInConflict, Capacity, holdsAlone } from './modes.ts';
export {
  type SlotStore,
  type SlotAnswer,
  readSlotEntry,
  refuseNewerSlotEntry,
  type SlotEntry,
  slotEntryText,
} from './slot-store.ts';
export type { ResultStore } from './result-store.ts';
export { clientClosedError, closedError, refuseAfterClose } from './refuse-after-close.ts';
export { BudgetTimer, TimeBudget } from './time-budget.ts';
export { answerWithin, MAX_TIMEOUT_MS, NoAnswerError, withTimeLimit } from './time-limit.ts';
export { shareListener } from './shared-listener.ts';
export {
  type LayoutMarker,
  type LayoutRemedies,
  StoreLayout,
  StoreLayoutError,
  type StoreLayoutErrorCode,
} from './store-layout.ts';
export { TurnWait } from './turn-wait.ts';
export { checkBackend } from './validate.ts';
export { freshAcquisitionId, isAcquisitionId } from '../acquire/acquisition-id.ts';
export { CombinedClock } from '../lifetime/clock.ts';
export { renewalStatusOf } from '../lifetime/renewal-status.ts';
export { invalidArgument, messageOf, mustBe } from '../errors.ts';
export { OWN_LOCK, OWN_NAMES, WAIT_NAMES } from '../names.ts';
export { endlessWaits } from '../deadlock/endless-waits.ts';
export { type ToldWait, toldBy } from '../deadlock/told-wait.ts';
export { type ChainHolder, followWaits, type WaitSource } from '../deadlock/wait-chain.ts';
