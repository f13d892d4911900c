export { type FaultName, FAULTS, type Strike } from './faults.ts';
export type { OtherLease, OtherLocks } from './other-locks.ts';
export type {
  FaultProof,
  PromiseProof,
  Proof,
  SuiteProof,
  Timeline,
  TimelineHold,
  TimelineStrike,
  Verdict,
} from './proof.ts';
export { prove } from './prove.ts';
export type { ProveOptions, StoreModule } from './prove-options.ts';
export { proofPage } from './report/proof-page.ts';
export { proofText } from './report/proof-text.ts';
