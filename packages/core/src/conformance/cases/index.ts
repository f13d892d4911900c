import type { ConformanceCase } from '../case.ts';
import { exclusionCases } from './exclusion.ts';
import { ownershipCases } from './ownership.ts';
import { ownershipLeaseCases } from './ownership-lease.ts';
import { ownershipOperatorCases } from './ownership-operator.ts';

/** Every case, in the order of the groups. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...exclusionCases,
  ...ownershipCases,
  ...ownershipLeaseCases,
  ...ownershipOperatorCases,
];
