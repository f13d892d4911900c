import {
  checkBackend,
  invalidArgument,
  type LockBackend,
  matching,
  milliseconds,
  mustBe,
  optional,
  type OptionTable,
  readOptions,
} from '@locks/core/backend';

/** Options of a quorum backend. */
export interface QuorumOptions {
  /**
   * Allowed clock drift: how much faster than ours a node's clock may run, as a part of the ttl. The validity of a lease is
   * shortened by that part and by 2 ms. From 0 to less than 1.
   * @defaultValue 0.01
   */
  readonly driftFactor?: number | undefined;
  /**
   * Time limit for a node's answer, in milliseconds; after it the node counts as failed. Much less than the ttl.
   * @defaultValue 500
   */
  readonly nodeTimeoutMs?: number | undefined;
}

export interface Quorum {
  readonly nodes: readonly LockBackend[];
  readonly majority: number;
  readonly driftFactor: number;
  readonly nodeTimeoutMs: number;
}

const TABLE = {
  driftFactor: optional(matching('a number from 0 to less than 1', isDriftFactor), 0.01),
  nodeTimeoutMs: optional(milliseconds(1, 60_000), 500),
} satisfies OptionTable<QuorumOptions>;

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function resolveQuorum(backends: readonly LockBackend[], options?: QuorumOptions): Quorum {
  if (!Array.isArray(backends) || backends.length === 0) {
    throw mustBe('quorumBackend()', 'given an array of backends', backends);
  }
  const nodes = backends.map((backend) => checkBackend(backend));
  if (new Set(nodes).size < nodes.length) {
    throw invalidArgument('quorumBackend() was given one backend twice: its nodes must fail independently.');
  }
  for (const { name, capabilities } of nodes) {
    if (capabilities.tenure === 'lease') continue;
    throw invalidArgument(
      `quorumBackend() takes backends with tenure 'lease'; ${name} has '${capabilities.tenure}', and the end of a ` +
        'session cannot be counted by.',
    );
  }
  // A majority is more than half of all nodes: with an even number, two halves must not both win.
  return {
    nodes,
    majority: Math.floor(nodes.length / 2) + 1,
    ...readOptions('quorumBackend()', options, TABLE),
  };
}

function isDriftFactor(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < 1;
}
