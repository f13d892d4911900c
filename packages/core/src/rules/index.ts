export type { HoldRecord, LockRecord, WaiterRecord } from './lock-record.ts';
export { type Attempted, LockRules, type RulesContext, type RulesRequest } from './lock-rules.ts';
