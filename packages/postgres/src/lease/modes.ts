import type { LockMode } from '@locks/core/backend';

// As in migrations/1/00-tables.sql.
const kinds = { exclusive: 0, shared: 1, permit: 2 } as const;

export interface ModeColumns {
  readonly kind: number;
  readonly weight: number;
  readonly permits: number | null;
}

export function modeColumns(mode: LockMode): ModeColumns {
  return mode.kind === 'permit'
    ? { kind: kinds.permit, weight: mode.weight, permits: mode.limit }
    : { kind: kinds[mode.kind], weight: 1, permits: null };
}

export function toMode(kind: unknown, weight: unknown, permits: unknown): LockMode {
  switch (Number(kind)) {
    case kinds.permit:
      return { kind: 'permit', weight: Number(weight), limit: Number(permits) };
    case kinds.shared:
      return { kind: 'shared' };
    default:
      return { kind: 'exclusive' };
  }
}
