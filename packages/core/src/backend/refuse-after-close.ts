import { LockError } from '../errors.ts';
import type { LockBackend } from './types.ts';

/** The methods that reach the store. `isRetryable` stays allowed, and `close` is a no-op then (docs/spec.md §12.3). */
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
  'prepare',
] as const;

/** The refusal of a call on a backend that was closed (docs/spec.md §12.6). */
export function closedError(backend: string): LockError {
  return new LockError('LOCK_CLOSED', `The backend ${backend} is closed: make a new one.`, { backend });
}

/** The refusal of a call through a client that the application closed (docs/spec.md §12.8). */
export function clientClosedError(backend?: string, resource?: string): LockError {
  return new LockError(
    'LOCK_CLOSED',
    'The client of the locks was closed before locks.close(). Close the locks first, and the client after them.',
    { backend, lockName: resource },
  );
}

/**
 * Makes the calls on `backend` reject with `LOCK_CLOSED` from its `close()` on, and closes it only once. Calls in flight are
 * not touched. Call it where a backend is made: at the end of its constructor, or around an object literal.
 *
 * @returns the same object
 */
export function refuseAfterClose<B extends LockBackend>(backend: B): B {
  let closing: Promise<void> | undefined;
  const error = (): LockError => closedError(backend.name);
  const define = (name: keyof LockBackend, value: unknown): void => {
    Object.defineProperty(backend, name, { value, configurable: true, writable: true });
  };
  for (const name of CALLS) {
    const method = backend[name] as ((...args: unknown[]) => Promise<unknown>) | undefined;
    if (method === undefined) continue;
    define(name, (...args: unknown[]) =>
      closing === undefined ? method.apply(backend, args) : Promise.reject(error()),
    );
  }
  const { list, close } = backend;
  if (list !== undefined) {
    const refused = { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error()) }) };
    define('list', (...args: Parameters<typeof list>) =>
      closing === undefined ? list.apply(backend, args) : refused,
    );
  }
  define('close', () => (closing ??= close.call(backend)));
  return backend;
}
