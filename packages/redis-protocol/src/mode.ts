import type { AcquireRequest, LockMode } from '@locks/core/backend';

/** What a waiter's place in the queue says of its mode: nothing for exclusive, 0 for a reader, else the weight. */
export function weightOf(mode: LockMode): string {
  switch (mode.kind) {
    case 'exclusive':
      return '';
    case 'shared':
      return '0';
    case 'permit':
      return String(mode.weight);
    default:
      return mode satisfies never;
  }
}

/** A mode as `acquire.lua` takes it: its limit, and {@link weightOf}. */
export function limitOf(mode: LockMode): string {
  return mode.kind === 'permit' ? String(mode.limit) : '0';
}

/** A mode as scripts tell it: minus 1 exclusive, 0 shared, else the limit of permits. */
export function modeOfLimit(limit: number, weight = 1): LockMode {
  if (limit < 0) return { kind: 'exclusive' };
  return limit === 0 ? { kind: 'shared' } : { kind: 'permit', limit, weight };
}

interface Held {
  readonly request: AcquireRequest;
  readonly mayBeShared?: boolean;
}

/**
 * The weight of a grant that may be one of several holds. An exclusive one may be a share too, once a downgrade of it was
 * sent.
 */
export function shareWeight({ request: { mode }, mayBeShared }: Held): string | undefined {
  if (mode.kind === 'exclusive') return mayBeShared ? '0' : undefined;
  return weightOf(mode);
}
