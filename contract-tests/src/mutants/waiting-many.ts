import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls, untilGivenUp } from './on-calls.ts';

export const waitingManyMutants: readonly Mutant[] = [
  {
    name: 'each-waiter-looks-up',
    says: 'every waiter that gives up asks who holds the resource',
    host: 'memory',
    expected: ['waiting/one-look-up-for-all'],
    calls: onCalls((backend) =>
      delegate(backend, {
        awaitTurn: async (request, call) => {
          const turn = await Promise.race([backend.awaitTurn?.(request, call), untilGivenUp(call)]);
          if (call.signal?.aborted) void backend.inspect(request.resource, call).catch(() => {});
          return turn;
        },
      }),
    ),
  },
  {
    name: 'holders-alone-are-none',
    says: 'inspect without waiters shows no holders',
    host: 'memory',
    expected: ['waiting/holders-without-waiters'],
    backend: (backend) =>
      delegate(backend, {
        inspect: async (resource, call, options) => {
          const state = await backend.inspect(resource, call, options);
          return options?.waiters === false ? { ...state, holders: [] } : state;
        },
      }),
  },
];
