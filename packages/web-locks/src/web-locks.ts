import type { LockBackend } from '@locks/core';
import { asException, domException } from './exceptions.ts';
import { LockClient } from './lock-client.ts';
import { checkRequest, convertArguments } from './request-arguments.ts';

export type WebLockMode = 'exclusive' | 'shared';

/** A granted lock, as the callback sees it. */
export interface WebLock {
  readonly name: string;
  readonly mode: WebLockMode;
}

/** Called with the lock, or with `null` where `ifAvailable` was asked for and the lock was not. */
export type LockGrantedCallback<T> = (lock: WebLock | null) => T;

export interface WebLockOptions {
  /** @defaultValue 'exclusive' */
  mode?: WebLockMode | undefined;
  /** Calls the callback with `null` instead of waiting. @defaultValue false */
  ifAvailable?: boolean | undefined;
  /** Takes the lock from its holders, ahead of all who wait. @defaultValue false */
  steal?: boolean | undefined;
  /** Ends the wait: the request rejects with `signal.reason`. Ignored once the lock is granted. */
  signal?: AbortSignal | undefined;
}

export interface LockInfo {
  name: string;
  mode: WebLockMode;
  clientId: string;
}

export interface LockManagerSnapshot {
  held: LockInfo[];
  pending: LockInfo[];
}

/** The `LockManager` of the W3C Web Locks API, over all processes that use the store. */
export interface WebLocks extends AsyncDisposable {
  /**
   * Requests a lock, calls `callback` with it, and releases it when what the callback returned has settled; the promise
   * settles with that after the release.
   *
   * @param name - any string that does not begin with `-`
   * @throws DOMException (as a rejection) `AbortError`: the lock was stolen, lost, or the manager was closed;
   * `NotSupportedError`: options that exclude each other, or that the backend does not have; `InvalidStateError` after
   * `close()`; the reason of `signal`. TypeError for arguments of a wrong type. LockError where the store fails.
   */
  request<T>(name: string, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  request<T>(name: string, options: WebLockOptions, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  /**
   * What is held and what waits, in all processes of the scope.
   * @throws DOMException (as a rejection) `NotSupportedError` on a backend without the feature `list`
   */
  query(): Promise<LockManagerSnapshot>;
  /** What `query()` calls this object; no other has it. Not in the specification. */
  readonly clientId: string;
  /**
   * Ends what waits and what is held with `AbortError`, and closes what the backend itself opened. Not in the
   * specification, where a page does it by going away.
   */
  close(): Promise<void>;
}

export interface WebLocksOptions {
  /**
   * Whoever names the same scope shares its locks, as pages of one origin do. Resources of core are called `scope:name`.
   * @defaultValue 'web-locks'
   */
  readonly scope?: string | undefined;
  /**
   * How long the store keeps the locks of a process that died, in milliseconds. Renewed every third of it.
   * @defaultValue 5 000, or the least that the backend has
   */
  readonly ttlMs?: number | undefined;
}

/**
 * The Web Locks API on a backend: code written for `navigator.locks` runs unchanged, across machines.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option or a backend that contradicts itself
 * @example
 * ```ts
 * const locks = webLocks(memoryBackend());
 * await locks.request('sku:42', async (lock) => sell(lock));
 * ```
 * @see https://w3c.github.io/web-locks/
 */
export function webLocks(backend: LockBackend, options: WebLocksOptions = {}): WebLocks {
  return new LockManager(new LockClient(backend, options));
}

class LockManager implements WebLocks {
  readonly #client: LockClient;
  #isClosed = false;

  constructor(client: LockClient) {
    this.#client = client;
  }

  get clientId(): string {
    return this.#client.clientId;
  }

  // An operation that returns a promise never throws: whatever is wrong is a rejection.
  async request(...passed: readonly unknown[]): Promise<never> {
    const wanted = convertArguments(passed);
    this.#checkOpen();
    checkRequest(wanted);
    this.#client.checkSupport(wanted);
    return (await this.#client.request(wanted)) as never;
  }

  async query(): Promise<LockManagerSnapshot> {
    this.#checkOpen();
    try {
      return await this.#client.query();
    } catch (error) {
      throw asException(error);
    }
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'LockManager';
  }

  /** The place of the specification's check whether the document is fully active. */
  #checkOpen(): void {
    if (this.#isClosed) throw domException('InvalidStateError', 'The lock manager was closed.');
  }
}
