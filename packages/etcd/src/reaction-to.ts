import type { LockMode } from '@locks/core/backend';
import { decodeEntry, type EntryEnd } from './etcd-entry.ts';
import type { WatchEvent } from './watch-stream.ts';

/** What a waiter does about an event of what it watches. */
export type Reaction =
  /** It waits on: the event lets nobody of its mode in. */
  | 'wait on'
  /** It claims at once: nobody was between it and the hold that ended. */
  | 'claim as next'
  /** It claims at once, under conditions on the whole queue. */
  | 'claim'
  /** It reads the queue first, in one request with the other waiters of this process. */
  | 'check';

/**
 * The one place that decides what a waiter does when what it watches changes: the entry that blocks it or, for permits, the whole queue.
 *
 * @param mode - of the waiter
 * @param isBlockerWaiting - whether this process still counts the blocker among its own waiters
 */
export function reactionTo(event: WatchEvent, mode: LockMode, isBlockerWaiting: boolean): Reaction {
  // The watch has missed history: only a read tells what happened.
  if (event.type === 'unknown') return 'check';
  switch (mode.kind) {
    case 'exclusive':
      // A downgrade of the blocker lets only readers in.
      return event.type === 'put' ? 'wait on' : reactionOfWriter(event.was, isBlockerWaiting);
    case 'shared':
      // A writer that is downgraded to a reader lets readers in. Readers are granted together.
      return event.type === 'put' && decodeEntry(event.kv).mode.kind !== 'shared' ? 'wait on' : 'check';
    case 'permit':
      // A new entry is behind all waiters.
      return event.type === 'put' && event.kv.version === '1' ? 'wait on' : 'check';
    default:
      return mode satisfies never;
  }
}

function reactionOfWriter(was: EntryEnd, isBlockerWaiting: boolean): Reaction {
  switch (was) {
    case 'held alone':
      return 'claim as next';
    case 'waited':
      // Behind a waiter that left there are usually others.
      return 'check';
    case 'held with others':
    case 'unknown':
      // If the deleted entry still waits here, its whole session or queue was probably deleted.
      return isBlockerWaiting ? 'check' : 'claim';
    default:
      return was satisfies never;
  }
}
