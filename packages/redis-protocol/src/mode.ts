import type { LockMode } from '@locks/core/backend';

// How scripts encode the modes that are no permit's.
const EXCLUSIVE_WEIGHT = '';
const READER_WEIGHT = '0';
const READER_LIMIT = 0;

/** The weight of a mode, as members of the queue and scripts write it. */
export function weightArgument(mode: LockMode): string {
  switch (mode.kind) {
    case 'exclusive':
      return EXCLUSIVE_WEIGHT;
    case 'shared':
      return READER_WEIGHT;
    case 'permit':
      return String(mode.weight);
    default:
      return mode satisfies never;
  }
}

/** The limit of a mode, as scripts take it: that of readers for an exclusive lock too. */
export function limitArgument(mode: LockMode): string {
  return String(mode.kind === 'permit' ? mode.limit : READER_LIMIT);
}

/** The mode for the limit in a script's reply, which is below that of readers for exclusive. */
export function modeOfLimit(limit: number, weight: number): LockMode {
  if (limit < READER_LIMIT) return { kind: 'exclusive' };
  return limit === READER_LIMIT ? { kind: 'shared' } : { kind: 'permit', limit, weight };
}

/**
 * The weight of a grant that may be a share in Redis, else `undefined`. An exclusive grant may be one from the moment its
 * downgrade was sent.
 */
export function shareWeight(mode: LockMode, mayBeShared: boolean): string | undefined {
  if (mode.kind === 'exclusive') return mayBeShared ? READER_WEIGHT : undefined;
  return weightArgument(mode);
}
