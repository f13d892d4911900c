import { compareSequences, parseLockNode, type LockNode } from './node-names.ts';

/** The nodes of all acquisitions that hold a resource or wait for it, in queue order. */
export class ZookeeperQueue {
  readonly nodes: readonly LockNode[];

  constructor(children: readonly string[]) {
    this.nodes = children
      .map(parseLockNode)
      .filter((node) => node !== undefined)
      .sort((a, b) => compareSequences(a.sequence, b.sequence) || (a.name < b.name ? -1 : 1));
  }

  nodesOf(acquisitionId: string): readonly LockNode[] {
    return this.nodes.filter((node) => node.acquisitionId === acquisitionId);
  }

  /**
   * The node to wait for and watch: the nearest one ahead that keeps `node` from holding, so that one change wakes one
   * waiter. `undefined` if `node` holds (docs/spec.md §15.2).
   */
  blockerOf(node: LockNode): LockNode | undefined {
    const before = this.nodes.slice(0, this.nodes.indexOf(node));
    return node.kind === 'x' ? before.at(-1) : before.findLast((other) => other.kind === 'x');
  }

  get holders(): readonly LockNode[] {
    return this.nodes.filter((node) => this.blockerOf(node) === undefined);
  }

  get waiters(): readonly LockNode[] {
    return this.nodes.filter((node) => this.blockerOf(node) !== undefined);
  }
}
