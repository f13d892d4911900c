import { compareSequences, parseLockNode, type LockNode } from './node-names.ts';

/** The nodes of all acquisitions that hold a resource or wait for it, in queue order. */
export class ZookeeperQueue {
  readonly nodes: readonly LockNode[];
  #places: ReadonlyMap<string, number> | undefined;

  constructor(children: readonly string[]) {
    this.nodes = children
      .map(parseLockNode)
      .filter((node) => node !== undefined)
      .sort((a, b) => compareSequences(a.sequence, b.sequence) || (a.name < b.name ? -1 : 1));
  }

  /** Whether a node with this name is in the queue. */
  has(name: string): boolean {
    return this.#placeOf(name) !== undefined;
  }

  nodesOf(acquisitionId: string): readonly LockNode[] {
    return this.nodes.filter((node) => node.acquisitionId === acquisitionId);
  }

  /**
   * The node to wait for and watch: the nearest one ahead that keeps `node` from holding, so that one change wakes one
   * waiter. `undefined` if `node` holds (docs/spec.md §15.2).
   */
  blockerOf({ kind, name }: LockNode): LockNode | undefined {
    let ahead = (this.#placeOf(name) ?? this.nodes.length) - 1;
    if (kind === 's') while (ahead >= 0 && this.nodes[ahead]?.kind !== 'x') ahead -= 1;
    return this.nodes[ahead];
  }

  get holders(): readonly LockNode[] {
    return this.nodes.filter((node) => this.blockerOf(node) === undefined);
  }

  get waiters(): readonly LockNode[] {
    return this.nodes.filter((node) => this.blockerOf(node) !== undefined);
  }

  /** The index of a node by its name, since many acquisitions of this process may look for their nodes in one list. */
  #placeOf(name: string): number | undefined {
    this.#places ??= new Map(this.nodes.map((node, place) => [node.name, place]));
    return this.#places.get(name);
  }
}
