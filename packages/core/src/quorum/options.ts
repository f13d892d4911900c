import type { LockBackend } from '../backend/types.ts';
import { checkBackend } from '../backend/validate.ts';
import { invalidArgument, mustBe } from '../errors.ts';

export interface QuorumOptions {
  /**
   * How much faster a node's clock may run than ours, as a part of the ttl; taken off what a lease is valid for, with
   * 2 ms more. From 0 to less than 1.
   * @defaultValue 0.01
   */
  readonly driftFactor?: number | undefined;
  /**
   * How long one node may take for one answer, in milliseconds; it counts as failed after it. Much less than the ttl.
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

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function resolveQuorum(backends: readonly LockBackend[], options: QuorumOptions = {}): Quorum {
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
  const { driftFactor = 0.01, nodeTimeoutMs = 500 } = options;
  if (typeof driftFactor !== 'number' || !(driftFactor >= 0 && driftFactor < 1)) {
    throw mustBe('driftFactor', 'a number from 0 to less than 1', driftFactor);
  }
  if (typeof nodeTimeoutMs !== 'number' || !(nodeTimeoutMs >= 1 && nodeTimeoutMs <= 60_000)) {
    throw mustBe('nodeTimeoutMs', 'a number of milliseconds from 1 to 60000', nodeTimeoutMs);
  }
  // More than half of all: with an even number, two halves must not both win.
  return { nodes, majority: Math.floor(nodes.length / 2) + 1, driftFactor, nodeTimeoutMs };
}
