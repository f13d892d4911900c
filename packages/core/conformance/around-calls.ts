import type { LockBackend } from '../src/backend/types.ts';
import { delegate } from './delegate.ts';

/** The calls that go to the store. */
export type StoreCall =
  | 'attempt'
  | 'attemptMany'
  | 'awaitTurn'
  | 'abandon'
  | 'renew'
  | 'release'
  | 'downgrade'
  | 'resize'
  | 'inspect'
  | 'forceRelease'
  | 'ping';

/** What happens around every call to the store. The call reaches the store only if this function calls `send`. */
export type Around = <T>(sent: StoreCall, send: () => Promise<T>) => Promise<T>;

/** A backend of which every call to the store goes through `around`. */
export function aroundCalls(backend: LockBackend, around: Around): LockBackend {
  const { attemptMany, awaitTurn, downgrade, resize, forceRelease, ping } = backend;
  return delegate(backend, {
    attempt: (...args) => around('attempt', () => backend.attempt(...args)),
    abandon: (...args) => around('abandon', () => backend.abandon(...args)),
    renew: (...args) => around('renew', () => backend.renew(...args)),
    release: (...args) => around('release', () => backend.release(...args)),
    inspect: (...args) => around('inspect', () => backend.inspect(...args)),
    ...(awaitTurn && { awaitTurn: (...args) => around('awaitTurn', () => awaitTurn.apply(backend, args)) }),
    ...(attemptMany && {
      attemptMany: (...args) => around('attemptMany', () => attemptMany.apply(backend, args)),
    }),
    ...(downgrade && { downgrade: (...args) => around('downgrade', () => downgrade.apply(backend, args)) }),
    ...(resize && { resize: (...args) => around('resize', () => resize.apply(backend, args)) }),
    ...(forceRelease && {
      forceRelease: (...args) => around('forceRelease', () => forceRelease.apply(backend, args)),
    }),
    ...(ping && { ping: (...args) => around('ping', () => ping.apply(backend, args)) }),
  });
}

/** Counts the calls that reach the store. */
export class CallCounter {
  readonly #counts = new Map<StoreCall, number>();
  readonly #answers = new Map<StoreCall, number>();

  /** For `context.client({ wrap: calls.wrap })`. */
  readonly wrap = (backend: LockBackend): LockBackend =>
    aroundCalls(backend, (sent, send) => {
      this.#counts.set(sent, this.of(sent) + 1);
      const answer = send();
      const answered = (): void => void this.#answers.set(sent, this.answersTo(sent) + 1);
      answer.then(answered, answered);
      return answer;
    });

  of(sent: StoreCall): number {
    return this.#counts.get(sent) ?? 0;
  }

  /** How many calls were answered, with a result or with an error. */
  answersTo(sent: StoreCall): number {
    return this.#answers.get(sent) ?? 0;
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }
}
