import type { LockBackend } from '../backend/types.ts';

/** The calls that go to the store. */
export type Sent = 'attempt' | 'awaitTurn' | 'abandon' | 'renew' | 'release' | 'inspect' | 'forceRelease';

/** A backend that is `backend` but for `changes`: what a case puts between core and the store. */
export function between(backend: LockBackend, changes: Partial<LockBackend>): LockBackend {
  const { awaitTurn, list, forceRelease, attemptMany } = backend;
  return {
    spec: backend.spec,
    name: backend.name,
    capabilities: backend.capabilities,
    attempt: (request, enqueue, call) => backend.attempt(request, enqueue, call),
    abandon: (request, call) => backend.abandon(request, call),
    renew: (items, call) => backend.renew(items, call),
    release: (grant, call) => backend.release(grant, call),
    inspect: (resource, call) => backend.inspect(resource, call),
    isRetryable: (error) => backend.isRetryable(error),
    close: () => backend.close(),
    ...(awaitTurn && { awaitTurn: (request, call) => awaitTurn.call(backend, request, call) }),
    ...(list && { list: (prefix, call) => list.call(backend, prefix, call) }),
    ...(forceRelease && { forceRelease: (...args) => forceRelease.apply(backend, args) }),
    ...(attemptMany && { attemptMany: (...args) => attemptMany.apply(backend, args) }),
    ...changes,
  };
}

/** Something to do around every call to the store. It must call `send` to let it through. */
export type Around = <T>(sent: Sent, send: () => Promise<T>) => Promise<T>;

/** A backend of which every call to the store goes through `around`. */
export function aroundCalls(backend: LockBackend, around: Around): LockBackend {
  const { awaitTurn, forceRelease } = backend;
  return between(backend, {
    attempt: (...args) => around('attempt', () => backend.attempt(...args)),
    abandon: (...args) => around('abandon', () => backend.abandon(...args)),
    renew: (...args) => around('renew', () => backend.renew(...args)),
    release: (...args) => around('release', () => backend.release(...args)),
    inspect: (...args) => around('inspect', () => backend.inspect(...args)),
    ...(awaitTurn && { awaitTurn: (...args) => around('awaitTurn', () => awaitTurn.apply(backend, args)) }),
    ...(forceRelease && { forceRelease: (...args) => around('forceRelease', () => forceRelease.apply(backend, args)) }),
  });
}

/** Counts the calls that reach the store. */
export class Traffic {
  readonly #counts = new Map<Sent, number>();

  /** For `stage.client({ wrap: traffic.wrap })`. */
  readonly wrap = (backend: LockBackend): LockBackend =>
    aroundCalls(backend, (sent, send) => {
      this.#counts.set(sent, this.of(sent) + 1);
      return send();
    });

  of(sent: Sent): number {
    return this.#counts.get(sent) ?? 0;
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }
}
