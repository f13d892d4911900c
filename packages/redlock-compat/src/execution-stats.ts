import type { LockBackend } from '@locks/core/backend';
import type { IoredisClient } from '@locks/redis-ioredis';

/** A `Redis` or `Cluster` of ioredis, or any backend of `@locks/core` whose locks end by a ttl: `redisBackend(client)` of `@locks/redis-node`. */
export type RedlockClient = IoredisClient | LockBackend;

/** The votes of the clients in one attempt, as far as they have answered. */
export interface ExecutionStats {
  /** The number of clients. */
  readonly membershipSize: number;
  /** The number of clients that decide. */
  readonly quorumSize: number;
  /** The clients that voted for the lock. */
  readonly votesFor: ReadonlySet<RedlockClient>;
  /**
   * The other clients, with the reasons for their votes: `ResourceLockedError` where somebody else holds the resource, else the
   * error of the client.
   */
  readonly votesAgainst: ReadonlyMap<RedlockClient, Error>;
}

/** The result of a successful operation. */
export interface ExecutionResult {
  /** The votes of the clients in each attempt. */
  readonly attempts: readonly Promise<ExecutionStats>[];
}
