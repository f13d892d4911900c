import { isLockError, type LockMode } from '@locks/core';
import { matching } from '@locks/core/backend';
import { type Attributes, diag } from '@opentelemetry/api';

/**
 * The group of a lock's name, for the attribute `lock.group`; `undefined` for none. There must be few groups: each has its own
 * series of every metric.
 */
export type GroupOf = (name: string) => string | undefined;

export const readGroupOf = matching('a function', (value): value is GroupOf => typeof value === 'function');

/** The properties of an event that determine its series. */
export interface Measured {
  readonly name: string;
  readonly backend: string;
  readonly mode: LockMode;
}

/** The attributes that all metrics and spans of a lock have. The name of a lock is never one. */
export function attributesOf(backend: string, mode: string, group: string | undefined): Attributes {
  const attributes: Attributes = { 'lock.backend': backend, 'lock.mode': mode };
  if (group !== undefined) attributes['lock.group'] = group;
  return attributes;
}

/** The user's function, made safe: one that throws must not end the process, as a listener of a diagnostics channel would. */
export function groupWith(groupOf: GroupOf | undefined): GroupOf {
  if (groupOf === undefined) return () => undefined;
  return (name) => {
    try {
      return groupOf(name);
    } catch (error) {
      diag.error('@locks/opentelemetry: groupOf() threw', error);
      return undefined;
    }
  };
}

/** The outcome of an acquire that got no lease. */
export function outcomeOf(
  error: unknown,
): 'timeout' | 'contended' | 'queue_full' | 'deadlock' | 'closed' | 'aborted' | 'error' {
  // An abort rejects with the signal's reason: any value, and a `LockError` where the signal is that of another lease, or of `newestWins`.
  if (!isLockError(error) || error.code === 'LOCK_LOST' || error.code === 'LOCK_SUPERSEDED') return 'aborted';
  if (error.code === 'LOCK_TIMEOUT') return 'timeout';
  if (error.code === 'LOCK_CONTENDED') return 'contended';
  if (error.code === 'LOCK_QUEUE_FULL') return 'queue_full';
  if (error.code === 'LOCK_DEADLOCK') return 'deadlock';
  return error.code === 'LOCK_CLOSED' ? 'closed' : 'error';
}

/** The attribute `error.type`: the code of an error, or else its class. Messages have names of locks, and are never used. */
export function errorType(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '_OTHER';
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  if (isIdentifier(code)) return code;
  return isIdentifier(name) ? name : '_OTHER';
}

function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z_]\w{0,63}$/.test(value);
}
