import type { WebLock, WebLockOptions, WebLocks } from '../src/index.ts';

export interface HeldLock {
  readonly lock: WebLock;
  /** What `request` gave. */
  readonly requested: Promise<unknown>;
  release(value?: unknown): void;
}

/** Holds a lock until it is released; resolves when the callback was called. */
export async function hold(
  locks: Pick<WebLocks, 'request'>,
  name: string,
  options: WebLockOptions = {},
): Promise<HeldLock> {
  let release!: (value?: unknown) => void;
  const work = new Promise<unknown>((resolve) => (release = resolve));
  let requested!: Promise<unknown>;
  const lock = await new Promise<WebLock>((granted, failed) => {
    requested = locks.request(name, options, (lock) => {
      granted(lock as WebLock);
      return work;
    });
    requested.catch(failed);
  });
  return { lock, requested, release };
}

/** The name of the error that a promise rejects with. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { resolved: await promise };
  } catch (error) {
    return error instanceof Error ? error.name : error;
  }
}
