import type { World } from '../kernel/world.ts';

/** How many writes of former holders came, and how many of them the fence stopped. */
export interface LateWrites {
  late: number;
  stopped: number;
}

/**
 * What a lock protects: a place that takes no write with a token below one that it has seen. It holds each writer to it that
 * nobody writes after a later holder has written, whatever the store of the locks has lost.
 */
export class FencedResource {
  readonly #world: World;
  readonly #name: string;
  readonly #counts: LateWrites;
  #highestToken = -1n;
  /** The number of the latest holder that has written, in the order of their first writes. */
  #lastWriter = 0;
  #holders = 0;

  constructor(world: World, name: string, counts: LateWrites) {
    this.#world = world;
    this.#name = name;
    this.#counts = counts;
  }

  /** The first write of a new holder. Gives its later writes. */
  enter(label: string, token: bigint): () => void {
    const number = (this.#holders += 1);
    this.#write(label, token, number);
    return () => this.#write(label, token, number);
  }

  #write(label: string, token: bigint, number: number): void {
    const isLate = number < this.#lastWriter;
    const isStopped = token < this.#highestToken;
    if (isLate) {
      this.#counts.late += 1;
      if (isStopped) this.#counts.stopped += 1;
      else this.#world.violated('§6.1', `${label} wrote to ${this.#name} with the token ${token}, too late`);
    }
    this.#world.note('resource', () => `${label} writes to ${this.#name}${isStopped ? ', refused' : ''}`);
    if (isStopped) return;
    this.#highestToken = token;
    this.#lastWriter = Math.max(this.#lastWriter, number);
  }
}
