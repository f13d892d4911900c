import type { LockBackend } from '../backend/types.ts';
import type { Protocol } from '../protocol.ts';
import type { Clock } from './clock.ts';
import type { LeaseMonitor } from './lease-monitor.ts';

/** The key of {@link RenewalThread}'s method. Registered: a process may have two copies of core. */
export const START: unique symbol = Symbol.for('@locks/thread@1') as never;

/** What `renewalThread()` of `@locks/core/renewal-thread` gives. */
export interface RenewalThread {
  /** For how long the leases are renewed after the last heartbeat of the event loop, in milliseconds. */
  readonly maxBlockedMs: number;
  /** Starts the thread for one manager. */
  [START](backend: LockBackend, clock: Clock): StartedThread;
}

/** What a manager with a renewal thread has in place of its own. */
export interface StartedThread {
  /** The backend of the manager: its attempts wait for the start of the thread, and its `close` ends it. */
  readonly backend: LockBackend;
  /** The monitor that gives its leases to the thread. */
  readonly Monitor: new (
    protocol: Protocol,
    clock: Clock,
  ) => LeaseMonitor;
}
