import { hasCode } from './client-port.ts';
import { decodeName, encodeName } from './names.ts';
import type { Session } from './session.ts';

/** Lines that other processes left empty are looked for this many times more rarely than our own are tidied. */
const ORPHANS_EVERY = 60;
/** So many of them are looked at in one go. */
const ORPHANS = 200;

/** A timer fires at once above this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

interface Parent {
  users: number;
  made: boolean;
  idleSince: number;
}

/** The nodes of the resources, under which their lines are: made at the first use, deleted when unused for a while. */
export class Parents {
  readonly root: string;
  readonly #tidyMs: number;
  readonly #session: () => Session | undefined;
  readonly #parents = new Map<string, Parent>();
  #sweeper: NodeJS.Timeout | undefined;
  #orphans: NodeJS.Timeout | undefined;

  /** `session`: the live one, if any. */
  constructor(root: string, tidyMs: number, session: () => Session | undefined) {
    this.root = root;
    this.#tidyMs = tidyMs;
    this.#session = session;
  }

  pathOf(resource: string): string {
    return `${this.root}/${encodeName(resource)}`;
  }

  /** One more acquisition of this resource. */
  enter(resource: string): string {
    const path = this.pathOf(resource);
    const parent = this.#parents.get(path);
    if (parent === undefined) this.#parents.set(path, { users: 1, made: false, idleSince: 0 });
    else parent.users += 1;
    this.#orphans ??= setInterval(
      () => void this.#sweepOrphans(),
      Math.min(ORPHANS_EVERY * this.#tidyMs * (0.5 + Math.random()), LONGEST_TIMEOUT_MS),
    ).unref();
    return path;
  }

  leave(path: string): void {
    const parent = this.#parents.get(path);
    if (parent === undefined) return;
    parent.users -= 1;
    if (parent.users > 0) return;
    parent.idleSince = performance.now();
    this.#sweeper ??= setInterval(() => void this.#sweep(), this.#tidyMs / 2).unref();
  }

  isMade(path: string): boolean {
    return this.#parents.get(path)?.made === true;
  }

  made(path: string): void {
    const parent = this.#parents.get(path);
    if (parent !== undefined) parent.made = true;
  }

  /** Somebody else deleted it. */
  unmade(path: string): void {
    const parent = this.#parents.get(path);
    if (parent !== undefined) parent.made = false;
  }

  async makeRoot(session: Session): Promise<void> {
    const segments = this.root.split('/').slice(1);
    for (const [index] of segments.entries()) {
      const path = `/${segments.slice(0, index + 1).join('/')}`;
      try {
        await session.ask(() => session.port.create(path, Buffer.alloc(0), 'persistent'));
      } catch (error) {
        if (!hasCode(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  /** The names of all resources that have a node. */
  async resources(session: Session): Promise<string[]> {
    try {
      const { names } = await session.ask(() => session.port.children(this.root));
      return names.map(decodeName).filter((name) => name !== undefined);
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return [];
      throw error;
    }
  }

  /** Deletes what nobody uses, now: the backend is closed. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    clearInterval(this.#orphans);
    await this.#sweep(0);
  }

  async #sweep(idleMs = this.#tidyMs): Promise<void> {
    const session = this.#session();
    const since = performance.now() - idleMs;
    const idle = [...this.#parents].filter(([, { users, idleSince }]) => users <= 0 && idleSince <= since);
    for (const [path] of idle) this.#parents.delete(path);
    if (this.#parents.size === 0) {
      clearInterval(this.#sweeper);
      this.#sweeper = undefined;
    }
    if (session === undefined) return;
    // Refused by the server where somebody is in line; who comes in the same moment makes it again.
    await Promise.allSettled(
      idle.filter(([, { made }]) => made).map(([path]) => session.ask(() => session.port.remove(path))),
    );
  }

  /** What killed processes left. */
  async #sweepOrphans(): Promise<void> {
    const session = this.#session();
    if (session === undefined || !session.connected) return;
    try {
      const names = await this.resources(session);
      const start = Math.floor(Math.random() * names.length);
      const some = [...names.slice(start), ...names.slice(0, start)].slice(0, ORPHANS);
      for (const path of some.map((name) => this.pathOf(name))) {
        if (this.#parents.has(path)) continue;
        const { names: line } = await session.ask(() => session.port.children(path));
        if (line.length === 0) await session.ask(() => session.port.remove(path));
      }
    } catch {
      // Another process was quicker, or the connection broke: the next time.
    }
  }
}
