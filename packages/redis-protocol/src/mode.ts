import type { AcquireRequest, LockMode } from '@locks/core/backend';

/** The weight of a mode, as members of the queue and scripts write it: empty for exclusive, 0 for a reader. */
export function weightArgument(mode: LockMode): string {
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

/** The limit of a mode, as scripts take it: 0 for a lock. */
export function limitArgument(mode: LockMode): string {
  return mode.kind === 'permit' ? String(mode.limit) : '0';
}

/** The mode for the limit in a script's reply: below 0 exclusive, 0 shared, else permits. */
export function modeOfLimit(limit: number, weight = 1): LockMode {
  if (limit < 0) return { kind: 'exclusive' };
  return limit === 0 ? { kind: 'shared' } : { kind: 'permit', limit, weight };
}

interface Held {
  readonly request: AcquireRequest;
  readonly mayBeShared?: boolean | undefined;
}

/**
 * The weight of a grant that may be a share in Redis, else `undefined`. An exclusive grant may be one from the moment its
 * downgrade was sent.
 */
export function shareWeight({ request: { mode }, mayBeShared }: Held): string | undefined {
  if (mode.kind === 'exclusive') return mayBeShared ? '0' : undefined;
  return weightArgument(mode);
}
