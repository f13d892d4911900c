import type { LockBackend, ResourceState } from '@locks/core';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const operatorMutants: readonly Mutant[] = [
  {
    name: 'inspect-forgets-labels',
    says: 'inspect shows holders without their labels',
    host: 'memory',
    expected: ['ownership/inspect-shows-the-holder'],
    backend: (backend) =>
      delegate(backend, {
        async inspect(resource, call) {
          const state = await backend.inspect(resource, call);
          return {
            ...state,
            holders: state.holders.map((holder) => ({ ...holder, label: undefined })),
          } as ResourceState;
        },
      }),
  },
  {
    name: 'list-ignores-the-prefix',
    says: 'list gives every resource',
    host: 'memory',
    expected: ['ownership/list-shows-the-live', 'names/are-given-back'],
    backend: (backend) =>
      delegate(backend, { ...(backend.list && { list: (_, call) => backend.list!('', call) }) }),
  },
  {
    name: 'list-gives-one-page',
    says: 'list gives the first 200 resources',
    host: 'memory',
    expected: ['names/are-given-back'],
    backend: (backend) => listsAtMost(backend, 200),
  },
  {
    name: 'list-stops-early',
    says: 'list gives the first three resources',
    host: 'memory',
    expected: ['ownership/list-shows-the-live', 'names/are-given-back'],
    backend: (backend) => listsAtMost(backend, 3),
  },
  {
    name: 'force-release-ignores-the-id',
    says: 'forceRelease with an acquisition id ends whatever hold there is',
    host: 'memory',
    expected: ['ownership/force-release-of-one-acquisition'],
    backend: (backend) =>
      delegate(backend, {
        forceRelease: async (resource, _, call) =>
          (await backend.forceRelease?.(resource, undefined, call)) ?? [],
      }),
  },
  {
    name: 'force-release-tells-nothing',
    says: 'forceRelease does not say whose holds it ended',
    host: 'memory',
    expected: ['ownership/force-release-frees', 'ownership/force-release-of-one-acquisition'],
    backend: (backend) =>
      delegate(backend, {
        async forceRelease(resource, id, call) {
          await backend.forceRelease?.(resource, id, call);
          return [];
        },
      }),
  },
];

function listsAtMost(backend: LockBackend, most: number): LockBackend {
  return delegate(backend, {
    async *list(prefix, call) {
      let count = 0;
      for await (const state of backend.list?.(prefix, call) ?? []) if (++count <= most) yield state;
    },
  });
}
