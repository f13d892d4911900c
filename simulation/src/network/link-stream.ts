import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';

/** A stream that carries nothing any more is found broken within this, or when a ping of the client is not answered, in milliseconds. */
const NOTICED_WITHIN_MS = 3_000;
const PINGED_AFTER_MS = 13_000;

/** The network as a stream needs it. */
export interface StreamNetwork {
  readonly world: World;
  readonly process: SimulatedProcess;
  readonly store: { readonly name: string; readonly isAway: boolean; readonly standsStillUntil?: number };
  readonly random: SeededRandom;
  /** The messages that are lost. */
  rates(): { readonly lostRequests: number; readonly lostReplies: number; readonly lostPushes: number };
  delay(): number;
  /** Whether a partition lets nothing through in the direction. */
  isBlocked(direction: 'requests' | 'replies'): boolean;
}

/** One direction of a stream. */
interface Way {
  last: number;
  /** A message was lost: as by TCP, nothing that is behind it arrives. */
  isCut: boolean;
}

/**
 * Messages in both directions between a process and a store, in order. A message that is lost takes all later ones with it, until the
 * client finds that the stream is broken.
 */
export class LinkStream {
  readonly #network: StreamNetwork;
  readonly #broken: () => void;
  readonly #up: Way = { last: 0, isCut: false };
  readonly #down: Way = { last: 0, isCut: false };
  #isOpen = true;
  #isHeard = true;

  /** @param broken - called in the process when it finds that the stream is broken */
  constructor(network: StreamNetwork, broken: () => void) {
    this.#network = network;
    this.#broken = broken;
  }

  send(what: () => string, receive: () => void): void {
    const { world, process, store, random } = this.#network;
    if (!this.#isOpen || this.#up.isCut) return;
    process.passes('before sending');
    if (random.chance(this.#network.rates().lostRequests)) return this.#cut(this.#up, 'lost request', what);
    const arrive = (): void => {
      if (!this.#isOpen || this.#up.isCut) return;
      if (this.#network.isBlocked('requests')) return this.#cut(this.#up, 'partition', what);
      if (store.isAway) return this.#break(world.now + this.#network.delay());
      if (world.now < (store.standsStillUntil ?? 0)) return this.#at(store.standsStillUntil ?? 0, arrive);
      world.note(store.name, () => `${process.name}: ${what()}`);
      receive();
    };
    this.#at(this.#arrival(this.#up), arrive);
    process.passes('after sending');
  }

  /** @param rate - of the messages that are lost */
  push(rate: 'lostReplies' | 'lostPushes', what: () => string, receive: () => void): void {
    const { world, process, random } = this.#network;
    if (!this.#isOpen || !this.#isHeard || this.#down.isCut) return;
    if (this.#network.isBlocked('replies') || random.chance(this.#network.rates()[rate]))
      return this.#cut(this.#down, rate === 'lostPushes' ? 'lost push' : 'lost reply', what);
    process.deliver(this.#arrival(this.#down), () => {
      if (!this.#isOpen || !this.#isHeard) return;
      world.note(process.name, () => `hears: ${what()}`);
      receive();
    });
  }

  /** Breaks, and the client sees it. */
  reset(): void {
    this.#break(this.#network.world.now);
  }

  close(): void {
    this.#isOpen = false;
  }

  /** The client hears nothing any more, and what it has sent arrives. */
  finish(): void {
    this.#isHeard = false;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  #arrival(way: Way): number {
    way.last = Math.max(way.last, this.#network.world.now + this.#network.delay());
    return way.last;
  }

  #at(at: number, happen: () => void): void {
    this.#network.world.schedule(at, happen);
  }

  #cut(way: Way, kind: string, what: () => string): void {
    const { world, process, random } = this.#network;
    way.isCut = true;
    world.countFault(kind);
    world.note(process.name, () => `${kind}, and all behind it on the stream: ${what()}`);
    this.#break(world.now + (random.chance(0.5) ? random.next() * NOTICED_WITHIN_MS : PINGED_AFTER_MS));
  }

  #break(at: number): void {
    this.#network.process.deliver(at, () => {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      if (this.#isHeard) this.#broken();
    });
  }
}
