import { type ClientPort, hasCode, ifPresent, type NodeContent } from './client-port.ts';

interface Watched {
  readonly callbacks: Set<() => void>;
  readonly content: Promise<NodeContent | undefined>;
}

/** One watch of the server for each node, however many callbacks this process has for it. */
export class Watches {
  readonly #active = new Map<string, Watched>();
  readonly #read: ClientPort['read'];

  constructor(read: ClientPort['read']) {
    this.#read = read;
  }

  /** The number of watched nodes, for tests and statistics. */
  get size(): number {
    return this.#active.size;
  }

  /**
   * Calls `changed` once, after the next change of the node. Returns the content of the node when the watch was set, or
   * `undefined` if there is no node, and so no watch.
   */
  async add(path: string, changed: () => void): Promise<NodeContent | undefined> {
    let watched = this.#active.get(path);
    if (watched === undefined) {
      watched = { callbacks: new Set(), content: this.#set(path) };
      this.#active.set(path, watched);
    }
    watched.callbacks.add(changed);
    return await watched.content;
  }

  drop(path: string, changed: () => void): void {
    this.#active.get(path)?.callbacks.delete(changed);
  }

  /** Reads each node after a reconnect, since a deletion may have been missed, and calls back for missing nodes. */
  async verify(): Promise<void> {
    await Promise.all(
      [...this.#active.keys()].map(async (path) => {
        const content = await ifPresent(this.#read(path, undefined)).catch(() => 'unknown');
        if (content === undefined) this.#fire(path);
      }),
    );
  }

  /** Calls all callbacks at the end of the session. */
  end(): void {
    for (const path of [...this.#active.keys()]) this.#fire(path);
  }

  async #set(path: string): Promise<NodeContent | undefined> {
    try {
      // A watch of a read, since the server would keep an existence watch for a node that never comes back.
      return await this.#read(path, () => this.#fire(path));
    } catch (error) {
      this.#active.delete(path);
      if (hasCode(error, 'NO_NODE')) return undefined;
      throw error;
    }
  }

  #fire(path: string): void {
    const watched = this.#active.get(path);
    this.#active.delete(path);
    for (const callback of watched?.callbacks ?? []) callback();
  }
}
