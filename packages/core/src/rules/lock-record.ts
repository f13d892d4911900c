import type { LockMode } from '../backend/types.ts';

/**
 * What a store keeps of one resource. All times are readings of one clock, that of the store, in a unit that the store
 * chooses.
 */
export interface LockRecord {
  /** The highest fencing token that was given out. */
  readonly token: number;
  /** In the order of their grants. */
  readonly holds: readonly HoldRecord[];
  /** In the order in which they are served. */
  readonly waiters: readonly WaiterRecord[];
}

/** An acquisition that waits in the queue of a resource. */
export interface WaiterRecord {
  /** The acquisition id. */
  readonly id: string;
  /** What it waits for. */
  readonly mode: LockMode;
  /** Readable, for operators. */
  readonly label: string | undefined;
  /** The backend object that waits. When it is dead, so is the waiter. */
  readonly client: string;
  /** How long it will hold once it is granted. */
  readonly ttl: number;
  /** When it came; `undefined` until the step that queued it is committed. */
  since: number | undefined;
}

/** An acquisition that holds a resource. */
export interface HoldRecord {
  /** The acquisition id. */
  readonly id: string;
  /** How it takes part. */
  mode: LockMode;
  /** Readable, for operators. */
  readonly label: string | undefined;
  /** Its fencing token. */
  readonly token: number;
  /** When it was granted; `undefined` until the step that granted it is committed. */
  since: number | undefined;
  /** When it ends; `undefined` where only the store knows, or where the end is counted from a commit that is to come. */
  until: number | undefined;
  /** How long it lasts from the commit that is to come. */
  span: number | undefined;
  /** It was stolen from the holders with lower tokens. */
  readonly stolen: boolean;
}
