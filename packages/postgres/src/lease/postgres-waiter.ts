import type { AcquireRequest, Call, Grant, TurnWait } from '@locks/core/backend';
import type { HandOff } from './replies.ts';

/** One acquisition in the queue of a resource, from the moment before its enqueue is sent to its grant or its end. */
export interface PostgresWaiter {
  readonly request: AcquireRequest;
  readonly call: Call;
  /** The pending `awaitTurn`, if there is one. */
  readonly turn: TurnWait;
  /** The position in the queue; `undefined` while the enqueue has no reply. */
  ticket: bigint | undefined;
  /** The sending time of the last request that found the acquisition waiting, on core's clock. */
  confirmedAt: number;
  /** A hand-off that arrived before the reply to the enqueue. */
  early: HandOff | undefined;
  /** A grant that arrived while no `awaitTurn` was pending. */
  grant: Grant | undefined;
  /** Whether the store removed the acquisition from the queue, so that it has to attempt again. */
  passedOver: boolean;
}

/** The view of the waiters of this process that the heartbeat needs. */
export interface WaiterRegistry {
  /** The name by which the store knows this backend. */
  readonly client: string;
  /** The waiters, by acquisition id. */
  readonly waiters: ReadonlyMap<string, PostgresWaiter>;
  handOffAll(handOffs: readonly HandOff[], ageMs: () => number): void;
  grant(waiter: PostgresWaiter, fencingToken: bigint, countedFrom: number, validForMs: number): void;
  /** Abandons an acquisition again that holds although it was given up; does nothing for any other. */
  abandonGivenUp(id: string): void;
  passedOver(waiter: PostgresWaiter): void;
}
