import type { AcquireRequest, LockMode } from '../backend/types.ts';
import type { ManagerCore } from '../manager-core.ts';
import { quote } from '../errors.ts';

/** `LOCK_CONFLICT`: the use of the resource contradicts the request (docs/spec.md §15.7). */
export function conflictError(
  core: ManagerCore,
  { resource, mode }: Pick<AcquireRequest, 'resource' | 'mode'>,
  held: LockMode,
): Error {
  const advice =
    mode.kind === 'permit' && held.kind === 'permit'
      ? 'Name the same number everywhere, or change it with resize().'
      : 'Use another name for one of them.';
  return core.error(
    'LOCK_CONFLICT',
    `${quote(resource)} is in use as ${describeMode(held)}; ${describeMode(mode)} was asked for. ${advice}`,
    resource,
  );
}

function describeMode(mode: LockMode): string {
  switch (mode.kind) {
    case 'exclusive':
      return 'an exclusive lock';
    case 'shared':
      return 'a readers/writer lock';
    case 'permit':
      return `a semaphore of ${mode.limit}`;
    default:
      return mode satisfies never;
  }
}
