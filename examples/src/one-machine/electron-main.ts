/**
 * The data of a profile belongs to one process: this app, a second instance of it, or the command-line tool beside it. What of
 * `electron` it needs is given: `ownProfile(app, locks, …)`.
 */
import type { Lease, LockManager } from '@locks/core';

export interface App {
  exit(code?: number): void;
  on(event: 'will-quit', listener: (event: { preventDefault(): void }) => void): unknown;
}

/** Call it before the first window opens the data; where it gives `undefined`, the app is about to end. */
export async function ownProfile(
  app: App,
  locks: LockManager,
  profile: string,
  say: (message: string) => void,
): Promise<Lease | undefined> {
  const lock = locks.lock(`profile ${profile}`, { ttlMs: 10_000, label: `the app, pid ${process.pid}` });
  const lease = await lock.tryAcquire();
  if (lease === undefined) {
    const [holder] = (await locks.inspect(lock.name)).holders;
    say(`The profile is in use: ${holder?.label ?? 'it has just been closed'}.`);
    app.exit(1);
    return undefined;
  }
  // After a long sleep, or a stop in a debugger, the data may belong to another process: write nothing more.
  lease.signal.addEventListener('abort', () => app.exit(70));
  app.on('will-quit', (event) => {
    event.preventDefault();
    void lease.release().then(
      () => app.exit(0),
      () => app.exit(0),
    );
  });
  return lease;
}
