import type { LockBackend } from '../backend/types.ts';
import { delegate } from './delegate.ts';

/** The calls that go to the store. */
export type Sent =
  | 'attempt'
  | 'attemptMany'
  | 'awaitTurn'
  | 'abandon'
  | 'renew'
  | 'release'
  | 'downgrade'
  | 'resize'
  | 'inspect'
  | 'forceRelease';

/** Something to do around every call to the store. It must call `send` to let it through. */
export type Around = <T>(sent: Sent, send: () => Promise<T>) => Promise<T>;

/** A backend of which every call to the store goes through `around`. */
export function aroundCalls(backend: LockBackend, around: Around): LockBackend {
  const { attemptMany, awaitTurn, downgrade, resize, forceRelease } = backend;
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
  });
}

/** Counts the calls that reach the store. */
export class Traffic {
  readonly #counts = new Map<Sent, number>();
  readonly #answers = new Map<Sent, number>();

  /** For `stage.client({ wrap: traffic.wrap })`. */
  readonly wrap = (backend: LockBackend): LockBackend =>
    aroundCalls(backend, (sent, send) => {
      this.#counts.set(sent, this.of(sent) + 1);
      const answer = send();
      const answered = (): void => void this.#answers.set(sent, this.answersTo(sent) + 1);
      answer.then(answered, answered);
      return answer;
    });

  of(sent: Sent): number {
    return this.#counts.get(sent) ?? 0;
  }

  /** How many calls were answered, well or badly. */
  answersTo(sent: Sent): number {
    return this.#answers.get(sent) ?? 0;
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }
}
