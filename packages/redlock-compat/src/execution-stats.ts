import type { LockBackend } from '@locks/core';
import type { IoredisClient } from '@locks/redis-ioredis';

/** A `Redis` or `Cluster` of ioredis, or any backend of `@locks/core` whose locks end by a ttl: `redisBackend(client)` of `@locks/redis-node`. */
export type RedlockClient = IoredisClient | LockBackend;

/** How the clients voted in one attempt, as far as they have answered. */
export interface ExecutionStats {
  /** How many clients there are. */
  readonly membershipSize: number;
  /** How many of them decide. */
  readonly quorumSize: number;
  /** Who voted for the lock. */
  readonly votesFor: ReadonlySet<RedlockClient>;
  /** Why the others did not: `ResourceLockedError` where somebody else holds the resource, else the error of the client. */
  readonly votesAgainst: ReadonlyMap<RedlockClient, Error>;
}

/** What a successful operation resolves to. */
export interface ExecutionResult {
  /** The votes of the clients in each attempt. */
  readonly attempts: readonly Promise<ExecutionStats>[];
}
