import type { AcquireRequest, LockMode } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';

/** The numbers of the modes in the tables: see migrations/1/00-tables.sql. */
const KINDS = { exclusive: 0, shared: 1, permit: 2 } as const;

/** The arguments p_ids to p_labels of the functions that acquire: an array of each column, in the order of the requests. */
export function acquireColumns(requests: readonly AcquireRequest[]): readonly (readonly Value[])[] {
  return [
    requests.map(({ acquisitionId }) => acquisitionId),
    requests.map(({ mode }) => KINDS[mode.kind]),
    requests.map(({ mode }) => (mode.kind === 'permit' ? mode.weight : 1)),
    requests.map(({ mode }) => (mode.kind === 'permit' ? mode.limit : null)),
    requests.map(({ ttlMs }) => ttlMs),
    requests.map(({ label }) => label ?? null),
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
