import { type LockBackend, messageOf } from '@locks/core/backend';

/** The failure of one node. */
export interface NodeFailure {
  readonly node: LockBackend;
  /** The error that the node's call rejected with. */
  readonly error: unknown;
}

/** The `cause` of a `LOCK_BACKEND` error of a call that too few nodes answered. `failures` has the errors of the others. */
export class QuorumError extends Error {
  override readonly name = 'QuorumError';
  /** Each node that failed, and why. */
  readonly failures: readonly NodeFailure[];

  constructor(doing: string, nodes: number, failures: readonly NodeFailure[]) {
    const reasons = failures.map(({ node, error }) => `${node.name}: ${messageOf(error)}`);
    super(`${failures.length} of ${nodes} nodes failed to ${doing}: ${reasons.join('; ')}`);
    this.failures = failures;
  }
}
