import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls } from './on-calls.ts';

export const closeCallMutants: readonly Mutant[] = [
  {
    name: 'calls-after-close',
    says: 'a grant that arrives after the backend was closed is abandoned there',
    host: 'memory',
    expected: ['close/no-call-after'],
    calls: onCalls((backend) => {
      let isClosed = false;
      return delegate(backend, {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          if (isClosed && attempt.status === 'granted') await backend.abandon(request, call);
          return attempt;
        },
        close() {
          isClosed = true;
          return backend.close();
        },
      });
    }),
  },
];
