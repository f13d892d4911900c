import type { LockMode } from '../backend/types.ts';

/**
 * The store's record of one resource. All times are readings of one clock, that of the store, in a unit that the store
 * chooses.
 */
export interface LockRecord {
  /** The highest fencing token that was given out. */
  readonly token: number;
  /** The holds, in the order of their grants. */
  readonly holds: readonly HoldRecord[];
  /** The waiters, in the order in which they are served. */
  readonly waiters: readonly WaiterRecord[];
}

/** An acquisition that waits in the queue of a resource. */
export interface WaiterRecord {
  /** The acquisition id. */
  readonly id: string;
  /** The mode that the waiter waits for. */
  readonly mode: LockMode;
  /** A readable name, for operators. */
  readonly label: string | undefined;
  /** The backend object that waits. When it is dead, so is the waiter. */
  readonly client: string;
  /** How long the waiter will hold once it is granted. */
  readonly ttl: number;
  /** When the waiter came; `undefined` until the step that queued it is committed. */
  since: number | undefined;
}

/** An acquisition that holds a resource. */
export interface HoldRecord {
  /** The acquisition id. */
  readonly id: string;
  /** How the acquisition takes part in the resource. */
  mode: LockMode;
  /** A readable name, for operators. */
  readonly label: string | undefined;
  /** The fencing token of the hold. */
  readonly token: number;
  /** When the hold was granted; `undefined` until the step that granted it is committed. */
  since: number | undefined;
  /** When the hold ends; `undefined` where only the store knows, or where the end is counted from a commit that is to come. */
  until: number | undefined;
  /**
   * Whether `until` is only the latest time by which the hold has ended: somebody saw it now for the first time, and knows nothing of its
   * age. @defaultValue `false`
   */
  isFirstSight?: boolean;
  /** How long the hold lasts from the commit that is to come. */
  span: number | undefined;
  /** Whether the resource was stolen from the holders with lower tokens. */
  readonly stolen: boolean;
}
