import { isLockError, type Lock, type LockError, type LockErrorCode } from '@locks/core';

/**
 * Holds `first`, and waits for `second` once all others hold theirs. Gives what became of that: an error of another
 * code than `code` is thrown.
 */
export function member(
  first: Lock,
  second: Lock,
  barrier: () => Promise<void>,
  code: LockErrorCode = 'LOCK_DEADLOCK',
): Promise<'entered' | LockError> {
  return first.run(async () => {
    await barrier();
    return await second
      .run(() => 'entered' as const)
      .catch((error: unknown) => {
        if (isLockError(error, code)) return error;
        throw error;
      });
  });
}

/** Resolves for all when as many have come. */
export function barrierOf(count: number): () => Promise<void> {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  let here = 0;
  return () => {
    here += 1;
    if (here === count) open();
    return opened;
  };
}
