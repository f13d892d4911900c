export type { GroupOf } from './attributes.ts';
export { meterLocks, type MeterLocksOptions } from './meter-locks.ts';
export { traceLocks, type TraceLocksOptions } from './trace-locks.ts';
