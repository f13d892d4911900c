import type { LocalWaiter, LocalWaiters } from '@locks/core/backend';
import type { HandOff } from './replies.ts';

/** One acquisition in the queue of a resource, from the moment before its enqueue is sent to its grant or its end. */
export interface PostgresWaiter extends LocalWaiter {
  /** The position in the queue; `undefined` while the enqueue has no reply, and after the store has passed the waiter over. */
  ticket: bigint | undefined;
  /** The sending time of the last request that found the acquisition waiting, on core's clock. */
  confirmedAt: number;
  /** A hand-off that arrived before the reply to the enqueue. */
  early: HandOff | undefined;
}

/** The view of the waiters of this process that the heartbeat needs. */
export interface WaiterRegistry {
  /** The name by which the store knows this backend. */
  readonly client: string;
  readonly known: LocalWaiters<PostgresWaiter>;
  handOffAll(handOffs: readonly HandOff[], ageMs: () => number): void;
  /** Abandons an acquisition again that holds although it was given up; does nothing for any other. */
  abandonGivenUp(id: string): void;
}
