import type { ExecutionStats } from './execution-stats.ts';

/** A vote against an acquire: somebody else holds the resource. */
export class ResourceLockedError extends Error {
  /** The name for messages and logs; use `instanceof` to tell errors apart. */
  override readonly name = 'ResourceLockedError';
}

/** The error of a failed operation. `cause` is the `LockError` of `@locks/core`, with its code. */
export class ExecutionError extends Error {
  /** The name for messages and logs; use `instanceof` to tell errors apart. */
  override readonly name = 'ExecutionError';
  /** The votes of the clients in each attempt; empty where nothing was sent. */
  readonly attempts: readonly Promise<ExecutionStats>[];

  constructor(message: string, attempts: readonly Promise<ExecutionStats>[], options?: ErrorOptions) {
    super(message, options);
    this.attempts = attempts;
  }
}
