import type { World } from '../kernel/world.ts';
import type { QueuedNode } from '../zookeeper/queue-view.ts';

/**
 * Holds one resource of ZooKeeper to docs/spec.md §2.2, §7.1 and §15.4 after every transaction. Who holds follows from the order of the
 * queue, so that two never do there: whether somebody else believes it is checked with the holders.
 */
export class ZookeeperQueueCheck {
  readonly #world: World;
  readonly #resource: string;
  #before: readonly QueuedNode[] = [];
  #lastPosition = -1;

  constructor(world: World, resource: string) {
    this.#world = world;
    this.#resource = resource;
  }

  written(queue: readonly QueuedNode[]): void {
    // A resource whose node was deleted begins to count again.
    if (this.#before.length === 0) this.#lastPosition = -1;
    const known = new Set(this.#before.map(({ path }) => path));
    for (const node of queue) if (!known.has(node.path)) this.#entered(node, queue);
    this.#before = queue;
  }

  #entered({ path, id, label, owner, position, mode }: QueuedNode, queue: readonly QueuedNode[]): void {
    const isOwn = (other: QueuedNode): boolean =>
      other.id === id && other.owner === owner && other.path !== path;
    const own = queue.filter(isOwn);
    if (own.some((other) => other.position !== position))
      this.#violated('§2.2', `${label} has a second node in the queue of #`);
    // A share takes the place of a hold in one transaction, or is made before the hold ends: else others would hold in between.
    if (own.length > 0 || this.#before.some((other) => isOwn(other) && other.position === position)) return;
    if (
      mode === 'shared' &&
      position <= this.#lastPosition &&
      queue.some((other) => other.position > position)
    )
      this.#violated('§15.4', `${label} comes back to the place in the queue of # that it has left`);
    this.#lastPosition = Math.max(this.#lastPosition, position);
  }

  #violated(clause: string, what: string): void {
    this.#world.violated(clause, what.replace('#', this.#resource));
  }
}
