import { LockError } from '../errors.ts';
import type { LockBackend } from './types.ts';

/** The methods that reach the store, except `list`. `isRetryable` and `connectionError` stay allowed. */
const CALLS = [
  'attempt',
  'attemptMany',
  'awaitTurn',
  'abandon',
  'renew',
  'release',
  'downgrade',
  'resize',
  'inspect',
  'forceRelease',
  'ping',
] as const;

/** The refusal of a call on a backend that was closed (docs/spec.md §12.6). */
export function closedError(backend: string): LockError {
  return new LockError('LOCK_CLOSED', `The backend ${backend} is closed: make a new one.`, { backend });
}

/**
 * Lets `close()` replace the methods of `backend` by ones that reject with `LOCK_CLOSED`, and do nothing when it is called again
 * (docs/spec.md §12.3, §12.6). Until then every method is the backend's own. Calls in flight are not touched. Call it where a backend
 * is made: at the end of its constructor, or around an object literal.
 *
 * @returns the same object
 */
export function refuseAfterClose<B extends LockBackend>(backend: B): B {
  const { close } = backend;
  backend.close = () => {
    const closing = close.call(backend);
    const refuse = (): Promise<never> => Promise.reject(closedError(backend.name));
    const methods: LockBackend = backend;
    for (const name of CALLS) if (methods[name] !== undefined) methods[name] = refuse;
    if (methods.list !== undefined)
      methods.list = () => ({ [Symbol.asyncIterator]: () => ({ next: refuse }) });
    methods.close = () => closing;
    return closing;
  };
  return backend;
}
