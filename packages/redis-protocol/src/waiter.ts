import type { AcquireRequest, Call, TurnWait } from '@locks/core/backend';
import type { RedisGrant } from './grant.ts';
import type { ResourceKeys } from './keys.ts';

/** One acquisition in the queue of a resource. */
export interface RedisWaiter {
  /** `granted`: handed the lock while nobody was in `awaitTurn`. `ended`: no waiter any more. */
  state: 'waiting' | 'granted' | 'ended';
  readonly request: AcquireRequest;
  readonly keys: ResourceKeys;
  /** The call of its last attempt. */
  call: Call;
  /** Its score in the queue of Redis. It returns there whatever happens to the queue. */
  position: number;
  /** How other processes reach this one, as the queue has it: see `Subscription`. */
  replyAddress: string;
  /** A check that changes `replyAddress` is under way. */
  isMoving: boolean;
  /** Its enqueue was sent again since it was answered. */
  isRepeated: boolean;
  /** On core's clock: before the last request that was answered with "still waiting". */
  confirmedAt: number;
  /** On core's clock: before the last request that moved the end of its queue, sent for it or for one before it. */
  queueTtlRefreshedAt: number;
  /** The token counter at that answer: a message with a token up to it is of an older hand-off that lapsed. */
  lastToken: number;
  /** Why its last check failed. */
  checkError?: unknown;
  grant: RedisGrant | undefined;
  readonly turn: TurnWait<RedisGrant>;
}
