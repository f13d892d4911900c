import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const closeAgainMutants: readonly Mutant[] = [
  {
    name: 'goes-on-after-close',
    says: 'a closed backend still takes calls',
    host: 'memory',
    expected: ['close/backend-refuses-calls', 'close/manager-on-closed-backend'],
    backend: (backend) => delegate(backend, { close: async () => {} }),
  },
  {
    name: 'fails-after-close',
    says: 'a closed backend fails as if its store were unreachable',
    host: 'memory',
    expected: ['close/backend-refuses-calls', 'close/manager-on-closed-backend'],
    backend: (backend) => {
      let isClosed = false;
      const gone = new Error('the connection is closed');
      return delegate(backend, {
        attempt: (...args) => (isClosed ? Promise.reject(gone) : backend.attempt(...args)),
        inspect: (...args) => (isClosed ? Promise.reject(gone) : backend.inspect(...args)),
        isRetryable: (error) => error === gone || backend.isRetryable(error),
        close() {
          isClosed = true;
          return backend.close();
        },
      });
    },
  },
];
