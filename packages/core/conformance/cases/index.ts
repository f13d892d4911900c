import type { ConformanceCase } from '../case.ts';
import { abortCases } from './abort.ts';
import { blockedCases } from './blocked.ts';
import { exclusionCases } from './exclusion.ts';
import { exclusionAfterAnEndCases } from './exclusion-after-an-end.ts';
import { expiryCases } from './expiry.ts';
import { expiryHandOffCases } from './expiry-hand-off.ts';
import { expiryReportedEndCases } from './expiry-reported-end.ts';
import { fencingCases } from './fencing.ts';
import { idempotenceCases } from './idempotence.ts';
import { idempotencePastCases } from './idempotence-past.ts';
import { lostReplyCases } from './idempotence-lost-replies.ts';
import { lossCases } from './loss.ts';
import { namesCases } from './names.ts';
import { renewalAnswerCases } from './renewal-answers.ts';
import { renewalByAnotherCases } from './renewal-by-another.ts';
import { renewalCases } from './renewal.ts';
import { ownershipCases } from './ownership.ts';
import { ownershipLeaseCases } from './ownership-lease.ts';
import { ownershipOperatorCases } from './ownership-operator.ts';
import { ownershipRaceCases } from './ownership-races.ts';
import { closeCases } from './close.ts';
import { closeAgainCases } from './close-again.ts';
import { closeCallCases } from './close-calls.ts';
import { closeClientCases } from './close-client.ts';
import { closeDrainCases } from './close-drain.ts';
import { closeSilenceCases } from './close-silence.ts';
import { cohortCases } from './cohort.ts';
import { cohortEndCases } from './cohort-ends.ts';
import { fairnessCases } from './fairness.ts';
import { fairnessCallCases } from './fairness-calls.ts';
import { fairnessEndCases } from './fairness-ends.ts';
import { faultCases } from './faults.ts';
import { foreignDataCases } from './faults-foreign.ts';
import { storeAwayCases } from './faults-store-away.ts';
import { transferCases } from './transfer.ts';
import { refusalCases } from './refusals.ts';
import { sessionCases } from './session.ts';
import { reentrancyCases } from './reentrancy.ts';
import { reentrancyHandleCases } from './reentrancy-handles.ts';
import { reentrancyCircleCases } from './reentrancy-circles.ts';
import { reentrancyStrangerCases } from './reentrancy-strangers.ts';
import { allCases } from './all.ts';
import { permitsCases } from './permits.ts';
import { permitsLimitsCases } from './permits-limits.ts';
import { permitsQueueCases } from './permits-queue.ts';
import { stallCases } from './stalls.ts';
import { stealCases } from './steal.ts';
import { randomFaultCases } from './random-faults.ts';
import { randomOperationCases } from './random-operations.ts';
import { sharedCases } from './shared.ts';
import { sharedDowngradeCases } from './shared-downgrade.ts';
import { sharedLateCases } from './shared-late.ts';
import { sharedQueueCases } from './shared-queue.ts';
import { shortLivedCases } from './expiry-short-lived.ts';
import { stalledClientCases } from './expiry-stalled-client.ts';
import { waitingCases } from './waiting.ts';
import { waitingDeathCases } from './waiting-deaths.ts';
import { waitingHintCases } from './waiting-hints.ts';
import { waitingLimitCases } from './waiting-limits.ts';
import { waitingManyCases } from './waiting-many.ts';
import { wireCases } from './wire.ts';

/** Every case, in the order of the groups. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...exclusionCases,
  ...exclusionAfterAnEndCases,
  ...ownershipCases,
  ...ownershipLeaseCases,
  ...ownershipOperatorCases,
  ...ownershipRaceCases,
  ...expiryCases,
  ...expiryHandOffCases,
  ...expiryReportedEndCases,
  ...shortLivedCases,
  ...stalledClientCases,
  ...renewalCases,
  ...renewalAnswerCases,
  ...renewalByAnotherCases,
  ...blockedCases,
  ...lossCases,
  ...fencingCases,
  ...waitingCases,
  ...waitingHintCases,
  ...waitingDeathCases,
  ...waitingLimitCases,
  ...waitingManyCases,
  ...fairnessCases,
  ...fairnessCallCases,
  ...fairnessEndCases,
  ...cohortCases,
  ...cohortEndCases,
  ...reentrancyCases,
  ...reentrancyHandleCases,
  ...reentrancyStrangerCases,
  ...reentrancyCircleCases,
  ...sharedCases,
  ...sharedLateCases,
  ...sharedQueueCases,
  ...sharedDowngradeCases,
  ...permitsCases,
  ...permitsQueueCases,
  ...permitsLimitsCases,
  ...allCases,
  ...stealCases,
  ...transferCases,
  ...randomOperationCases,
  ...randomFaultCases,
  ...abortCases,
  ...sessionCases,
  ...closeCases,
  ...closeCallCases,
  ...closeClientCases,
  ...closeAgainCases,
  ...closeDrainCases,
  ...closeSilenceCases,
  ...faultCases,
  ...foreignDataCases,
  ...storeAwayCases,
  ...refusalCases,
  ...namesCases,
  ...idempotenceCases,
  ...idempotencePastCases,
  ...lostReplyCases,
  ...stallCases,
  ...wireCases,
];
