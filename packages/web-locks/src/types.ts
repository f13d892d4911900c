/** The mode of a lock. `exclusive`: alone; `shared`: together with other `shared` locks of the same name. */
export type WebLockMode = 'exclusive' | 'shared';

/** A granted lock, as the callback sees it. */
export interface WebLock {
  /** The name that was requested. */
  readonly name: string;
  /** The mode: whether others may hold the same name. */
  readonly mode: WebLockMode;
}

/**
 * The callback of a request: called with the lock, or with `null` where `ifAvailable` was given and the lock was not available.
 */
export type LockGrantedCallback<T> = (lock: WebLock | null) => T;

/** The options of `request`. */
export interface WebLockOptions {
  /** The mode: whether others may hold the same name. @defaultValue 'exclusive' */
  mode?: WebLockMode | undefined;
  /** Calls the callback with `null` instead of waiting. @defaultValue false */
  ifAvailable?: boolean | undefined;
  /** Takes the lock from its holders, ahead of all who wait. @defaultValue false */
  steal?: boolean | undefined;
  /** Ends the wait: the request rejects with `signal.reason`. Ignored once the lock is granted. */
  signal?: AbortSignal | undefined;
}

/** A lock that is held or asked for, as `query` tells it. */
export interface LockInfo {
  /** The name that was requested. */
  name: string;
  /** The mode: whether others may hold the same name. */
  mode: WebLockMode;
  /** The `clientId` of the manager that requested it. */
  clientId: string;
}

/** The locks of a scope at one moment. */
export interface LockManagerSnapshot {
  /** The locks that are held. */
  held: LockInfo[];
  /** The requests that wait. */
  pending: LockInfo[];
}

/** The `LockManager` of the W3C Web Locks API, over all processes that use the store. */
export interface WebLocks extends AsyncDisposable {
  /**
   * Requests a lock, calls `callback` with it, and releases it when the callback's result has settled; the promise settles with
   * that result after the release.
   *
   * @param name - any string that does not begin with `-`
   * @throws DOMException (as a rejection) `AbortError`: the lock was stolen, lost, or the manager was closed;
   * `NotSupportedError`: options that exclude each other, or that the backend does not have; `InvalidStateError` after
   * `close()`; the reason of `signal`. TypeError for arguments of a wrong type. LockError `LOCK_BACKEND` where
   * the store fails.
   */
  request<T>(name: string, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  request<T>(name: string, options: WebLockOptions, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  /**
   * The held locks and the waiting requests of all processes of the scope.
   * @throws DOMException (as a rejection) `NotSupportedError` on a backend without the feature `list`, `InvalidStateError`
   * after `close()`; LockError `LOCK_BACKEND` where the store fails
   */
  query(): Promise<LockManagerSnapshot>;
  /** The unique id of this object in the results of `query()`. Not in the specification. */
  readonly clientId: string;
  /**
   * Ends waiting requests and held locks with `AbortError`, and closes what the backend itself opened. Not in the
   * specification, where closing the page has this effect.
   * @throws LockError `LOCK_BACKEND` when the backend failed to close, or did not within 10 s
   */
  close(): Promise<void>;
}

/** The options of `webLocks`. */
export interface WebLocksOptions {
  /**
   * Objects with the same scope share their locks, as pages of one origin do. Resources of core are called `scope:name`.
   * @defaultValue 'web-locks'
   */
  readonly scope?: string | undefined;
  /**
   * The ttl of the locks in milliseconds: how long the store keeps those of a process that died. Locks are renewed every third
   * of it.
   * @defaultValue 5 000, or the minimum of the backend if that is more
   */
  readonly ttlMs?: number | undefined;
  /**
   * The requests, aborts and releases of this object that reach the store one after the other. `'client'`: all of them, as in
   * the specification. `'name'`: those for one name; those for different names do not wait for each other.
   * @defaultValue 'client'
   */
  readonly order?: 'client' | 'name' | undefined;
}
