import { invalidArgument, mustBe } from '@locks/core/backend';

const MAX_BYTES = 512;

/** Refuses what core refuses as a name: docs/spec.md §10.1. */
export function checkLockName(name: unknown): string {
  if (typeof name !== 'string' || name === '' || Buffer.byteLength(name) > MAX_BYTES)
    throw mustBe('@locks/postgres: a lock name', `a string of 1 to ${MAX_BYTES} UTF-8 bytes`, name);
  // Two different lone surrogates have the same UTF-8 bytes, so two names would be one lock.
  if (!name.isWellFormed())
    throw invalidArgument(`@locks/postgres: the lock name ${JSON.stringify(name)} has a lone surrogate.`);
  return name;
}
