export { ExecutionError, ResourceLockedError } from './errors.ts';
export { Lock, type LockOwner } from './lock.ts';
export { Redlock, Redlock as default, type RedlockAbortSignal, type RedlockRoutine } from './redlock.ts';
export type { RedlockCallSettings, Settings } from './settings.ts';
export type { ExecutionResult, ExecutionStats, RedlockClient } from './execution-stats.ts';
