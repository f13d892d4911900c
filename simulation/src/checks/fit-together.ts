import type { LockMode } from '@locks/core';

/** Whether one more may hold beside those who hold (docs/spec.md §15.1, §15.5), decided apart from core. */
export function fitTogether(held: readonly LockMode[], mode: LockMode): boolean {
  // After a resize a waiter may want more than there is.
  if (held.length === 0) return mode.kind !== 'permit' || mode.weight <= mode.limit;
  if (mode.kind === 'exclusive' || held.some(({ kind }) => kind !== mode.kind)) return false;
  if (mode.kind === 'shared') return true;
  const weight = held.reduce((sum, other) => sum + (other.kind === 'permit' ? other.weight : 0), 0);
  return weight + mode.weight <= mode.limit;
}
