import { permitsMutants } from './permits.ts';
import { permitsLimitsMutants } from './permits-limits.ts';
import { sharedMutants } from './shared.ts';
import { stealMutants } from './steal.ts';
import { blockedMutants } from './blocked.ts';
import { cohortMutants } from './cohort.ts';
import { exclusionMutants } from './exclusion.ts';
import { expiryMutants } from './expiry.ts';
import { fairnessMutants } from './fairness.ts';
import { faultMutants } from './faults.ts';
import { fencingMutants } from './fencing.ts';
import { idempotenceMutants } from './idempotence.ts';
import { transferMutants } from './transfer.ts';
import { lossMutants } from './loss.ts';
import { foundMutants } from './found.ts';
import type { PlantedMutant } from './mutant.ts';
import { planted } from './plant.ts';
import { ownershipMutants } from './ownership.ts';
import { raceMutants } from './races.ts';
import { reentrancyMutants } from './reentrancy.ts';
import { renewalMutants } from './renewal.ts';
import { renewalByAnotherMutants } from './renewal-by-another.ts';
import { sessionMutants } from './session.ts';
import { waitingMutants } from './waiting.ts';
import { wireMutants } from './wire.ts';

/** Every mutant, in the order of the groups that they break. */
export const mutants: readonly PlantedMutant[] = [
  ...exclusionMutants,
  ...ownershipMutants,
  ...raceMutants,
  ...expiryMutants,
  ...renewalMutants,
  ...renewalByAnotherMutants,
  ...blockedMutants,
  ...lossMutants,
  ...fencingMutants,
  ...waitingMutants,
  ...fairnessMutants,
  ...cohortMutants,
  ...reentrancyMutants,
  ...sharedMutants,
  ...permitsMutants,
  ...permitsLimitsMutants,
  ...stealMutants,
  ...transferMutants,
  ...sessionMutants,
  ...idempotenceMutants,
  ...faultMutants,
  ...wireMutants,
  ...foundMutants,
].map(planted);
