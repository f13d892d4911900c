import type { Engine } from '../engine.ts';
import type { Patience } from './patience.ts';

/** What a caller is told whose wait was ended from outside; `undefined` when its own time was over. */
export function endedFromOutside(
  engine: Engine,
  resource: string,
  patience: Patience,
): { readonly reason: unknown } | undefined {
  switch (patience.interruption) {
    case 'aborted':
      return { reason: patience.userSignal?.reason };
    case 'closed':
      return {
        reason: engine.error('LOCK_CLOSED', 'The lock manager was closed while it waited.', resource),
      };
    default:
      return undefined;
  }
}
