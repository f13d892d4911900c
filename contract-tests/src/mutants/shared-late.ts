import type { AcquireRequest, Call, LockBackend } from '@locks/core';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';

const expected = ['shared/a-late-release-ends-no-other-share'];

/** Mutants whose store counts shares without naming them: one release too many takes one of the count. */
export const sharedLateMutants: readonly Mutant[] = [
  {
    name: 'a-late-release-counts',
    says: 'a release of a share that is not held ends the share of another',
    host: 'memory',
    expected,
    backend: (backend) =>
      delegate(backend, {
        async release(grant, call) {
          const released = await backend.release(grant, call);
          if (released !== 'released') await endOneShare(backend, grant.request, call);
          return released;
        },
      }),
  },
  {
    name: 'a-late-abandon-counts',
    says: 'an abandon of a share that is not held ends the share of another',
    host: 'memory',
    expected,
    backend: (backend) =>
      delegate(backend, {
        async abandon(request, call) {
          const { holders, waiters } = await backend.inspect(request.resource, call);
          const isKnown = [...holders, ...waiters].some(
            ({ acquisitionId }) => acquisitionId === request.acquisitionId,
          );
          await (isKnown ? backend.abandon(request, call) : endOneShare(backend, request, call));
        },
      }),
  },
];

async function endOneShare(
  backend: LockBackend,
  { resource, mode }: AcquireRequest,
  call: Call,
): Promise<void> {
  const { holders } = await backend.inspect(resource, call);
  const [held] = holders.filter((holder) => mode.kind === 'shared' && holder.mode.kind === 'shared');
  if (held !== undefined) await backend.forceRelease?.(resource, held.acquisitionId, call);
}
