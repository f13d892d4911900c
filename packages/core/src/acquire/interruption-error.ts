import type { CallContext } from '../call/call-context.ts';
import type { ManagerCore } from '../manager-core.ts';

/** The error for a caller whose wait was ended from outside; `undefined` when its own time was over. */
export function interruptionFromOutside(
  core: ManagerCore,
  resource: string | undefined,
  { interruption, userSignal }: CallContext,
): { readonly reason: unknown } | undefined {
  switch (interruption) {
    case 'aborted':
      return { reason: userSignal?.reason };
    case 'closed':
      return { reason: core.closedError(resource) };
    case 'deadline':
    case undefined:
      return undefined;
    default:
      return interruption satisfies never;
  }
}
