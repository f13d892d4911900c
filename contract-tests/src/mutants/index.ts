import { allMutants } from './all.ts';
import { permitsMutants } from './permits.ts';
import { permitsLimitsMutants } from './permits-limits.ts';
import { sharedLateMutants } from './shared-late.ts';
import { sharedMutants } from './shared.ts';
import { stealMutants } from './steal.ts';
import { abortMutants } from './abort.ts';
import { closeMutants } from './close.ts';
import { exclusionMutants } from './exclusion.ts';
import { expiryMutants } from './expiry.ts';
import { expiryToldMutants } from './expiry-told.ts';
import { fairnessMutants } from './fairness.ts';
import { faultMutants } from './faults.ts';
import { fencingMutants } from './fencing.ts';
import { idempotenceMutants } from './idempotence.ts';
import { lossMutants } from './loss.ts';
import type { Mutant } from './mutant.ts';
import { namesMutants } from './names.ts';
import { operatorMutants } from './operator.ts';
import { ownershipMutants } from './ownership.ts';
import { raceMutants } from './races.ts';
import { reentrancyMutants } from './reentrancy.ts';
import { renewalMutants } from './renewal.ts';
import { sessionMutants } from './session.ts';
import { unseenEndMutants } from './unseen-ends.ts';
import { waitingMutants } from './waiting.ts';

/** Every mutant, in the order of the groups that they break. */
export const mutants: readonly Mutant[] = [
  ...exclusionMutants,
  ...ownershipMutants,
  ...operatorMutants,
  ...raceMutants,
  ...expiryMutants,
  ...expiryToldMutants,
  ...renewalMutants,
  ...lossMutants,
  ...fencingMutants,
  ...waitingMutants,
  ...fairnessMutants,
  ...reentrancyMutants,
  ...sharedMutants,
  ...sharedLateMutants,
  ...permitsMutants,
  ...permitsLimitsMutants,
  ...allMutants,
  ...stealMutants,
  ...abortMutants,
  ...sessionMutants,
  ...namesMutants,
  ...idempotenceMutants,
  ...unseenEndMutants,
  ...closeMutants,
  ...faultMutants,
];
