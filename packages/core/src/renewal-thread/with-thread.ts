import type { AcquireRequest, Call, Grant, LockBackend } from '../backend/types.ts';
import type { Renewer } from './renewer.ts';

const STARTING = new Error('the renewal thread has not started yet');

/** The backend of a manager that has a renewal thread. */
export function withThread(backend: LockBackend, renewer: Renewer): LockBackend {
  /** Waits until the thread can renew; an acquire that was given up meanwhile, or cannot be kept, is never sent. */
  const start = async (call: Call): Promise<void> => {
    // The signal is made when it is first read: before the wait.
    const { signal } = call;
    await renewer.started;
    if (renewer.failure !== undefined) throw renewer.failure;
    signal?.throwIfAborted();
  };
  const whenStarted =
    <G extends unknown[], T>(send: (...given: G) => Promise<T>) =>
    (...given: G): Promise<T> =>
      renewer.isRunning ? send(...given) : start(given.at(-1) as Call).then(() => send(...given));
  const own: Partial<LockBackend> = {
    attempt: whenStarted((...given: Parameters<LockBackend['attempt']>) => backend.attempt(...given)),
    // Nothing was sent that could be abandoned.
    abandon: async (request: AcquireRequest, call: Call) => {
      if (!renewer.isStarting && renewer.failure === undefined) await backend.abandon(request, call);
    },
    async release(grant: Grant, call: Call) {
      const kept = renewer.releasing(grant);
      const answer = backend.release(grant, call);
      if (kept === undefined) return answer;
      // Where the event loop stood still right after the call, this is the first that runs after that: no timer has given up yet.
      await Promise.resolve();
      if (kept.isReleaseAnswered) {
        answer.catch(() => {});
        return 'released';
      }
      const given = await answer;
      // After a release of the thread, `not-held` means that it released the lease (docs/spec.md §2.4).
      return kept.releaseAnswered() && given === 'not-held' ? 'unknown' : given;
    },
    connectionError: (request) => (renewer.isStarting ? STARTING : backend.connectionError?.(request)),
    isRetryable: (error) => error !== renewer.failure && backend.isRetryable(error),
    async close() {
      await Promise.all([backend.close(), renewer.close()]);
    },
    ...(backend.attemptMany !== undefined && {
      attemptMany: whenStarted(
        (...given: Parameters<NonNullable<LockBackend['attemptMany']>>) =>
          backend.attemptMany?.(...given) as Promise<readonly Grant[] | undefined>,
      ),
    }),
  };
  // A backend may have private members: its other methods must be called on itself.
  const bound = new Map<PropertyKey, unknown>();
  return new Proxy(backend, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return own[key as keyof LockBackend];
      const value = target[key as keyof LockBackend] as unknown;
      if (typeof value !== 'function') return value;
      if (!bound.has(key)) bound.set(key, value.bind(target));
      return bound.get(key);
    },
  });
}
