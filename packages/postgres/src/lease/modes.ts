import type { AcquireRequest, LockMode } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';

/** The numbers of the modes in the tables: see migrations/1/00-tables.sql. */
const KINDS = { exclusive: 0, shared: 1, permit: 2 } as const;

/**
 * The arguments p_ids to p_labels of the functions that acquire: an array of each column, in the order of the requests. No element is
 * null, which a session with `array_nulls = off` reads as a text: 0 stands for no permits, and an empty text for no label.
 */
export function acquireColumns(requests: readonly AcquireRequest[]): readonly (readonly Value[])[] {
  return [
    requests.map(({ acquisitionId }) => acquisitionId),
    requests.map(({ mode }) => KINDS[mode.kind]),
    requests.map(({ mode }) => (mode.kind === 'permit' ? mode.weight : 1)),
    requests.map(({ mode }) => (mode.kind === 'permit' ? mode.limit : 0)),
    requests.map(({ ttlMs }) => ttlMs),
    requests.map(({ label }) => label ?? ''),
  ];
}

export function toMode(kind: unknown, weight: unknown, permits: unknown): LockMode {
  switch (Number(kind)) {
    case KINDS.permit:
      return { kind: 'permit', weight: Number(weight), limit: Number(permits) };
    case KINDS.shared:
      return { kind: 'shared' };
    default:
      return { kind: 'exclusive' };
  }
}
