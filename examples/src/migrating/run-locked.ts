/** What every file of this folder has twice, `before` and `after`: work under the lock of a name. */
export type RunLocked = <T>(name: string, work: () => Promise<T>) => Promise<T>;
