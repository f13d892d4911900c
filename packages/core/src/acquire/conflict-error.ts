import type { AcquireRequest, LockMode } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { quote } from '../errors.ts';

/** `LOCK_CONFLICT`: what lives on the resource contradicts the request (docs/spec.md §15.7). */
export function conflictError(
  engine: Engine,
  { resource, mode }: Pick<AcquireRequest, 'resource' | 'mode'>,
  held: LockMode,
): Error {
  const advice =
    mode.kind === 'permit' && held.kind === 'permit'
      ? 'Name the same number everywhere, or change it with resize().'
      : 'Use another name for one of them.';
  return engine.error(
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
