import { LockError } from '@locks/core';

const LONGEST_BYTES = 512;

/** The names that core takes, and no others: docs/spec.md §10.1. */
export function checkLockName(name: unknown): string {
  if (typeof name !== 'string' || name === '' || Buffer.byteLength(name) > LONGEST_BYTES) {
    throw invalid(`a lock name must be a string of 1 to ${LONGEST_BYTES} UTF-8 bytes, not ${show(name)}`);
  }
  // Two different lone surrogates have the same UTF-8 bytes, so two names would be one lock.
  if (!name.isWellFormed()) throw invalid(`the lock name ${show(name)} has a lone surrogate`);
  return name;
}

export function invalid(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', `@locks/postgres: ${message}.`);
}

export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length <= 40 ? value : `${value.slice(0, 40)}…`);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return String(value);
}
