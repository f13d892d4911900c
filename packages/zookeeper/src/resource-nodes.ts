import { MAX_TIMEOUT_MS } from '@locks/core/backend';
import { makeNodes } from './make-nodes.ts';
import { decodeName, encodeName } from './node-names.ts';
import type { ZookeeperSession } from './zookeeper-session.ts';

/** The number of sweeps of our own unused nodes for each search for unused nodes of other processes. */
const ORPHANS_EVERY = 60;
/** The number of nodes that one search for unused nodes of other processes reads. */
const ORPHANS = 200;

interface ResourceNode {
  users: number;
  made: boolean;
  idleSince: number;
}

/** The nodes of the resources, the parents of their queues: created at the first use, deleted when unused for a while. */
export class ResourceNodes {
  readonly root: string;
  readonly #idleTtlMs: number;
  readonly #session: () => ZookeeperSession | undefined;
  readonly #nodes = new Map<string, ResourceNode>();
  #sweeper: NodeJS.Timeout | undefined;
  #orphans: NodeJS.Timeout | undefined;

  /** @param session - returns the live session, if any */
  constructor(root: string, idleTtlMs: number, session: () => ZookeeperSession | undefined) {
    this.root = root;
    this.#idleTtlMs = idleTtlMs;
    this.#session = session;
  }

  pathOf(resource: string): string {
    return `${this.root}/${encodeName(resource)}`;
  }

  /** Counts one more acquisition of this resource. */
  enter(resource: string): string {
    const path = this.pathOf(resource);
    const parent = this.#nodes.get(path);
    if (parent === undefined) this.#nodes.set(path, { users: 1, made: false, idleSince: 0 });
    else parent.users += 1;
    this.#orphans ??= setInterval(
      () => void this.#sweepOrphans(),
      Math.min(ORPHANS_EVERY * this.#idleTtlMs * (0.5 + Math.random()), MAX_TIMEOUT_MS),
    ).unref();
    return path;
  }

  leave(path: string): void {
    const parent = this.#nodes.get(path);
    if (parent === undefined) return;
    parent.users -= 1;
    if (parent.users > 0) return;
    parent.idleSince = performance.now();
    this.#sweeper ??= setInterval(() => void this.#sweep(this.#idleTtlMs), this.#idleTtlMs / 2).unref();
  }

  isMade(path: string): boolean {
    return this.#nodes.get(path)?.made === true;
  }

  made(path: string): void {
    const parent = this.#nodes.get(path);
    if (parent !== undefined) parent.made = true;
  }

  /** Records that somebody else deleted the node. */
  unmade(path: string): void {
    const parent = this.#nodes.get(path);
    if (parent !== undefined) parent.made = false;
  }

  async makeRoot(session: ZookeeperSession): Promise<void> {
    await makeNodes(session, this.root);
  }

  /** The names of all resources that have a node. */
  async resources(session: ZookeeperSession): Promise<string[]> {
    const names = await session.children(this.root);
    return names.map(decodeName).filter((name) => name !== undefined);
  }

  /** Deletes all unused nodes at once, when the backend is closed. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    clearInterval(this.#orphans);
    await this.#sweep(0);
  }

  async #sweep(idleMs: number): Promise<void> {
    const session = this.#session();
    const since = performance.now() - idleMs;
    const idle = [...this.#nodes].filter(([, { users, idleSince }]) => users <= 0 && idleSince <= since);
    for (const [path] of idle) this.#nodes.delete(path);
    if (this.#nodes.size === 0) {
      clearInterval(this.#sweeper);
      this.#sweeper = undefined;
    }
    if (session === undefined) return;
    // The server refuses to delete a node with children; an acquisition that comes just after the deletion creates it again.
    await Promise.allSettled(
      idle.filter(([, { made }]) => made).map(([path]) => session.ask(() => session.port.remove(path))),
    );
  }

  /** Deletes nodes that killed processes left. */
  async #sweepOrphans(): Promise<void> {
    const session = this.#session();
    if (session === undefined || !session.connected) return;
    try {
      const names = await this.resources(session);
      const start = Math.floor(Math.random() * names.length);
      const some = [...names.slice(start), ...names.slice(0, start)].slice(0, ORPHANS);
      for (const path of some.map((name) => this.pathOf(name))) {
        if (this.#nodes.has(path)) continue;
        if ((await session.children(path)).length === 0) await session.ask(() => session.port.remove(path));
      }
    } catch {
      // Another process was quicker, or the connection broke: the next search repeats it.
    }
  }
}
