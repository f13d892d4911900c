export { coalesce, type CoalesceOptions, type CoalesceRun } from './coalesce.ts';
export { newestWins, type NewestWinsOptions } from './newest-wins.ts';
export { once, type OnceOptions, type OnceResult, type OnceRun } from './once.ts';
export type { SlotStore, SlotAnswer, ResultStore, SlotEntry } from '@locks/core/backend';
export { type TextStore, textSlots } from './slot-store.ts';
export { resetSlot, type ResetSlotOptions } from './reset-slot.ts';
export { day, type DayOptions, every, type EveryOptions, hour, type Slot } from './slots.ts';
export { type RunCoordinator, runCoordinator, type RunCoordinatorOptions } from './run-coordinator.ts';
