import type { LockMode } from '@locks/core';
import { nameOf, type NodeTree, parentOf } from './node-tree.ts';

/** What the adapter writes before its names. */
const LOCKS = '/locks/:';
const NODE = /^([xs])\.(.+)\.(\d{10})$/;

/** One acquisition of a resource, as its node says, read apart from the adapter. */
export interface QueuedNode {
  readonly path: string;
  readonly id: string;
  readonly label: string | undefined;
  readonly mode: LockMode['kind'];
  /** The session that made it. */
  readonly owner: number;
  readonly token: number;
  /** Smaller: further ahead in the queue. */
  readonly position: number;
  readonly isHeld: boolean;
}

export function parentOfResource(resource: string): string {
  return `${LOCKS}${resource}`;
}

/** The resource of a node; `undefined`: it is none of an acquisition. */
export function resourceOf(path: string): string | undefined {
  const parent = parentOf(path);
  return parent.startsWith(LOCKS) && NODE.test(nameOf(path)) ? parent.slice(LOCKS.length) : undefined;
}

/** The queue of a resource: in front those who hold. */
export function queueOf(tree: NodeTree, resource: string): QueuedNode[] {
  const parent = parentOfResource(resource);
  const nodes = [...(tree.get(parent)?.children ?? [])].flatMap((name): QueuedNode[] => {
    const [, kind, id = '', sequence] = NODE.exec(name) ?? [];
    const path = `${parent}/${name}`;
    const node = tree.get(path);
    if (kind === undefined || node === undefined) return [];
    const { label, token } = JSON.parse(node.data.toString()) as { label?: string; token?: string };
    const mode = kind === 'x' ? 'exclusive' : 'shared';
    const position = Number(sequence);
    return [
      {
        path,
        id,
        label,
        mode,
        owner: node.owner,
        token: Number(token ?? node.czxid),
        position,
        isHeld: false,
      },
    ];
  });
  // Of a hold that becomes a share both nodes are there for a moment, and the share counts.
  const queue = nodes.toSorted((a, b) => a.position - b.position || (a.mode === 'shared' ? -1 : 1));
  const firstAlone = queue.findIndex(({ mode }) => mode === 'exclusive');
  return queue.map((node, at) => ({ ...node, isHeld: firstAlone < 0 || at < Math.max(1, firstAlone) }));
}
