import type { LocalWaiter } from '@locks/core/backend';
import type { ResourceKeys } from './keys.ts';

/** One acquisition in the queue of a resource. */
export interface RedisWaiter extends LocalWaiter {
  readonly keys: ResourceKeys;
  /** The score in the queue of Redis. The waiter returns to it whatever happens to the queue. */
  position: number;
  /** The reply address of this process, as the queue has it: see `Subscription`. */
  replyAddress: string;
  /** Whether a check that changes `replyAddress` is in flight. */
  isMoving: boolean;
  /** Whether the enqueue was sent again since it was answered. */
  isRepeated: boolean;
  /** The time before the last request that was answered with "still waiting", on core's clock. */
  confirmedAt: number;
  /** The token counter at the answer "still waiting": a message with a token up to it is of an older hand-off that lapsed. */
  lastToken: number;
  /** The error of the waiter's last check. */
  checkError?: unknown;
}
