import { type ClientPort, hasCode, type NodeContent } from './client-port.ts';

interface Watched {
  readonly callbacks: Set<() => void>;
  readonly content: Promise<NodeContent | undefined>;
}

/** One watch of the server for each node, however many in this process look at it. */
export class Watches {
  readonly #active = new Map<string, Watched>();
  readonly #read: ClientPort['read'];

  constructor(read: ClientPort['read']) {
    this.#read = read;
  }

  /** For tests and figures. */
  get size(): number {
    return this.#active.size;
  }

  /**
   * Calls `changed` once, after the next change of the node. Gives the node's content as it was when the watch was
   * set, or `undefined` where there is none and so nothing to watch.
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

  /** After a reconnect: a change may have been missed. Asks for each node, and lets those who watch it look again. */
  async verify(): Promise<void> {
    await Promise.all(
      [...this.#active.keys()].map(async (path) => {
        try {
          await this.#read(path);
        } catch (error) {
          if (hasCode(error, 'NO_NODE')) this.#fire(path);
        }
      }),
    );
  }

  /** The session ended: all are called, nothing is watched any more. */
  end(): void {
    for (const path of [...this.#active.keys()]) this.#fire(path);
  }

  async #set(path: string): Promise<NodeContent | undefined> {
    try {
      // Of a read, not of an existence: the server would keep that of a node that never comes back.
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
