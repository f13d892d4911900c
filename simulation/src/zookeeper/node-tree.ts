import { Buffer } from 'node:buffer';

/** A node as it stands. */
export interface StoredNode {
  readonly data: Buffer;
  /** The transaction that created it. */
  readonly czxid: number;
  /** By the leader's wall clock, in milliseconds. */
  readonly createdAt: number;
  /** The session of an ephemeral node; 0: none. */
  readonly owner: number;
  readonly children: Set<string>;
  /** How many children were ever created: the number of the next sequential one. */
  childrenCreated: number;
  /** The last transaction that created or deleted a child. */
  pzxid: number;
}

export type NodeChange =
  | { readonly kind: 'create'; readonly path: string; readonly data: Buffer; readonly owner: number }
  | { readonly kind: 'delete'; readonly path: string };

/** What a transaction does. */
export type Change =
  | NodeChange
  | { readonly kind: 'several'; readonly changes: readonly NodeChange[] }
  | { readonly kind: 'new session'; readonly session: number; readonly timeoutMs: number }
  | { readonly kind: 'end session'; readonly session: number }
  /** A request was refused, and everybody counts its transaction. */
  | { readonly kind: 'refusal'; readonly code: number }
  /** Of several together: the number for each of them. */
  | { readonly kind: 'refusal of several'; readonly codes: readonly number[] };

export interface Transaction {
  readonly zxid: number;
  /** By the leader's wall clock. */
  readonly at: number;
  readonly change: Change;
}

/** The nodes and the sessions that a server knows. */
export class NodeTree {
  readonly #nodes = new Map<string, StoredNode>();
  /** The timeouts of the sessions, in milliseconds. */
  readonly sessions = new Map<number, number>();
  zxid = 0;

  constructor() {
    this.#add('', { data: EMPTY, czxid: 0, createdAt: 0, owner: 0 });
  }

  /** The same nodes, to try changes. */
  copy(): NodeTree {
    const copy = new NodeTree();
    copy.zxid = this.zxid;
    for (const [path, node] of this.#nodes)
      copy.#nodes.set(path, { ...node, children: new Set(node.children) });
    return copy;
  }

  get(path: string): StoredNode | undefined {
    return this.#nodes.get(path === '/' ? '' : path);
  }

  get paths(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  /** Returns the paths that were deleted: of nothing else a read's watch hears here, where no data is written again. */
  apply({ zxid, at, change }: Transaction): readonly string[] {
    this.zxid = zxid;
    switch (change.kind) {
      case 'create': {
        const { path, data, owner } = change;
        this.#add(path, { data, czxid: zxid, createdAt: at, owner });
        const parent = this.get(parentOf(path));
        if (parent !== undefined) {
          parent.children.add(nameOf(path));
          parent.childrenCreated += 1;
          parent.pzxid = zxid;
        }
        return [];
      }
      case 'delete':
        this.#delete(change.path, zxid);
        return [change.path];
      case 'several':
        return change.changes.flatMap((one) => this.apply({ zxid, at, change: one }));
      case 'new session':
        this.sessions.set(change.session, change.timeoutMs);
        return [];
      case 'end session': {
        this.sessions.delete(change.session);
        const paths = [...this.#nodes]
          .filter(([, { owner }]) => owner === change.session)
          .map(([path]) => path);
        for (const path of paths) this.#delete(path, zxid);
        return paths;
      }
      case 'refusal':
      case 'refusal of several':
        return [];
      default:
        return change satisfies never;
    }
  }

  #add(path: string, node: Pick<StoredNode, 'data' | 'czxid' | 'createdAt' | 'owner'>): void {
    this.#nodes.set(path, { ...node, children: new Set(), childrenCreated: 0, pzxid: node.czxid });
  }

  #delete(path: string, zxid: number): void {
    this.#nodes.delete(path);
    const parent = this.get(parentOf(path));
    parent?.children.delete(nameOf(path));
    if (parent !== undefined) parent.pzxid = zxid;
  }
}

const EMPTY = Buffer.alloc(0);

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
