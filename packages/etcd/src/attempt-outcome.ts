import type { Conflict, Grant } from '@locks/core/backend';
import type { EtcdEntry } from './etcd-entry.ts';

/** The acquisition waits behind other entries. */
export interface Blocked {
  readonly status: 'blocked';
  /** The entry to watch; `undefined` where nobody is ahead, and more permits are asked for than there are. */
  readonly nearest: EtcdEntry | undefined;
  /** The blocker is ahead of the part of the queue that was read, and `nearest` is not the blocker. */
  readonly blockerUnread: boolean;
  /** The revision at which this was read. */
  readonly revision: number;
}

/** The acquisition was in the queue and has left it. */
export interface NotQueued {
  readonly status: 'not-queued';
}

/** The turn of an acquisition has come. */
export interface Free {
  readonly status: 'free';
  /** The revision of its entry in the read that found this; `undefined` where its entry is a hold already. */
  readonly asOf: number | undefined;
}

/** The status of an acquisition in the queue. */
export type QueueStatus = Free | Blocked | NotQueued;

/** The result of an attempt. */
export type AttemptOutcome =
  | { readonly status: 'granted'; readonly grant: Grant }
  | Blocked
  | NotQueued
  | Conflict;
