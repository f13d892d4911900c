import type { Holder, ResourceState } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const operatorMutants: readonly Mutant[] = [
  {
    name: 'inspect-forgets-labels',
    says: 'inspect shows holders without their labels',
    expected: ['ownership/inspect-shows-the-holder'],
    backend: (backend) => ({
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
    name: 'ping-is-always-well',
    says: 'ping does not ask the store',
    expected: ['faults/ping-reports-whether-the-store-answers'],
    calls: () => ({ ping: () => Promise.resolve() }),
  },
  {
    name: 'answers-with-bigints',
    says: 'the answers of inspect and forceRelease cannot be written as JSON',
    expected: ['ownership/answers-as-json'],
    locks: (locks) => ({
      inspect: async (name) => bare(await locks.inspect(name)),
      forceRelease: async (name, options) => (await locks.forceRelease(name, options)).map(bare),
    }),
  },
  {
    name: 'list-ignores-the-prefix',
    says: 'list gives every resource',
    expected: ['ownership/list-shows-the-live', 'names/are-listed-unchanged'],
    backend: (backend) => ({ ...(backend.list && { list: (_, call) => backend.list!('', call) }) }),
  },
  {
    name: 'list-fails-with-one',
    says: 'list fails where one resource has data of another program',
    host: 'sqlite',
    expected: ['faults/foreign-data-fails-its-own-name'],
    backend: (backend) => ({
      async *list(prefix, call) {
        for await (const state of backend.list?.(prefix, call) ?? []) {
          if (state.holders.some(isStranger)) throw new TypeError('Cannot read properties of undefined');
          yield state;
        }
      },
    }),
  },
  {
    name: 'foreign-data-is-misread',
    says: 'a call for a resource with data of another program fails as its decoder does',
    host: 'sqlite',
    expected: ['faults/foreign-data-fails-its-own-name'],
    backend: (backend) => ({
      async inspect(resource, call) {
        const state = await backend.inspect(resource, call);
        if (state.holders.some(isStranger)) throw new TypeError('Cannot read properties of undefined');
        return state;
      },
    }),
  },
  {
    name: 'list-stops-early',
    says: 'list gives the first three resources',
    expected: ['ownership/list-shows-the-live', 'names/are-listed-unchanged'],
    backend: (backend) => listsAtMost(backend, 3),
  },
  {
    name: 'force-release-ignores-the-id',
    says: 'forceRelease with an acquisition id ends any hold of the resource',
    expected: ['ownership/force-release-of-one-acquisition'],
    backend: (backend) => ({
      forceRelease: async (resource, _, call) =>
        (await backend.forceRelease?.(resource, undefined, call)) ?? [],
    }),
  },
  {
    name: 'force-release-skips-what-it-does-not-know',
    says: 'forceRelease ignores unknown options',
    expected: ['ownership/misread-force-release'],
    locks: (locks) => ({
      forceRelease: (name, options) =>
        locks.forceRelease(name, { acquisitionId: (options as typeof options | null)?.acquisitionId }),
    }),
  },
  {
    name: 'force-release-gives-nothing',
    says: 'forceRelease does not give the holders whose holds it ended',
    expected: ['ownership/force-release-frees', 'ownership/force-release-of-one-acquisition'],
    backend: (backend) => ({
      async forceRelease(resource, id, call) {
        await backend.forceRelease?.(resource, id, call);
        return [];
      },
    }),
  },
];

/** Whether the harness of SQLite has written a hold. */
function isStranger({ acquisitionId }: Holder): boolean {
  return acquisitionId === 'of another program';
}

/** A copy without the properties that are not enumerable. */
function bare<T>(answer: T): T {
  return structuredClone(answer);
}

function listsAtMost(backend: LockBackend, most: number): LockBackend {
  return delegate(backend, {
    async *list(prefix, call) {
      let count = 0;
      for await (const state of backend.list?.(prefix, call) ?? []) if (++count <= most) yield state;
    },
  });
}
