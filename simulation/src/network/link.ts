import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { LinkStream } from './link-stream.ts';

/** What a network does to requests. Rates are probabilities, from 0 to 1. */
export interface NetworkOptions {
  /** A message takes this long, and up to as much again, in milliseconds. */
  readonly latencyMs: number;
  /**
   * What one connection carries arrives in the order in which it was sent, as by TCP. Otherwise the client has a pool, and each
   * message may go by a connection of its own.
   */
  readonly ordered: boolean;
  /** Messages that take up to `slowMs`. */
  readonly slow: number;
  readonly slowMs: number;
  /** Requests that never arrive. */
  readonly lostRequests: number;
  /** Requests that are executed, and whose replies never arrive. */
  readonly lostReplies: number;
  /** Requests that the client sends twice, because its connection broke: the first copy may arrive last. */
  readonly resent: number;
  /** Pushed messages that never arrive. */
  readonly lostPushes: number;
}

/** The connection broke: the request may or may not have been executed. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  /** As the errors of Node's sockets say it. */
  readonly code = 'ECONNRESET';
}

export interface Answer<T> {
  readonly value: T;
  /** The request may have been executed before, by an earlier sending. */
  readonly resent: boolean;
}

/** What a store is to a link. */
export interface StoreNode {
  readonly name: string;
  /** It refuses connections, and keeps its data. */
  readonly isAway: boolean;
  /** It answers nothing before this true time, and then everything that has come. */
  readonly standsStillUntil?: number;
}

/** One connection of a client: what is sent on it later does not arrive earlier. */
class Connection {
  #lastRequest = 0;
  #lastReply = 0;

  requestArrives(at: number): number {
    this.#lastRequest = Math.max(this.#lastRequest, at);
    return this.#lastRequest;
  }

  replyArrives(at: number): number {
    this.#lastReply = Math.max(this.#lastReply, at);
    return this.#lastReply;
  }
}

/** What a client keeps a connection for: Redis sends messages on one that is used for nothing else. */
export type ConnectionUse = 'requests' | 'messages';

/** A connection that breaks without a sign is noticed after this at the latest, in milliseconds. */
const NOTICED_AFTER_MS = 3_000;

/** The network between one process and one store. */
export class Link {
  readonly #world: World;
  readonly #process: SimulatedProcess;
  readonly #store: StoreNode;
  readonly #random: SeededRandom;
  #options: NetworkOptions;
  /** True times until which nothing goes through in a direction. */
  #requestsBlockedUntil = 0;
  #repliesBlockedUntil = 0;
  #connections = connect();
  #reconnects = 0;
  /** Fails the requests under way. */
  readonly #underWay = new Set<() => void>();
  readonly #streams = new Set<LinkStream>();
  /** Requests on streams that somebody waits for. */
  unansweredOnStreams = 0;
  /** Called when the first copy of a request is executed after the second. */
  onLateCopy: (what: string) => void = () => {};
  /** Called when the connection breaks. */
  onReset: () => void = () => {};

  constructor(
    world: World,
    process: SimulatedProcess,
    store: StoreNode,
    random: SeededRandom,
    options: NetworkOptions,
  ) {
    this.#world = world;
    this.#process = process;
    this.#store = store;
    this.#random = random;
    this.#options = options;
  }

  /** From here on the network is like this. */
  becomes(options: NetworkOptions): void {
    this.#options = options;
  }

  /** How often the connection was lost so far. */
  get reconnects(): number {
    return this.#reconnects;
  }

  /** Whether somebody waits for an answer. */
  get isBusy(): boolean {
    return this.#underWay.size + this.unansweredOnStreams > 0;
  }

  /** Lets nothing through in one direction, or in both. */
  partition(direction: 'requests' | 'replies' | 'both', ms: number): void {
    const until = this.#world.now + ms;
    if (direction !== 'replies') this.#requestsBlockedUntil = until;
    if (direction !== 'requests') this.#repliesBlockedUntil = until;
  }

  /** Breaks the connections: requests under way fail, whether they were executed or not. */
  reset(): void {
    this.#reconnect();
    for (const fail of [...this.#underWay]) fail();
    for (const stream of this.#streams) stream.reset();
    this.#streams.clear();
    this.onReset();
  }

  /**
   * Sends a request, and gives the answer of `execute`, which runs at the store when the request arrives there.
   *
   * @param giveUpAt - true time after which the caller does not wait any more
   */
  request<T>(
    what: () => string,
    giveUpAt: number,
    execute: () => T,
    use: ConnectionUse = 'requests',
  ): Promise<Answer<T>> {
    const connection = this.#connections[use];
    const world = this.#world;
    const random = this.#random;
    const { lostRequests, lostReplies, resent } = this.#options;
    this.#process.passes('before sending');
    const answer = new Promise<Answer<T>>((resolve, reject) => {
      let settled = false;
      const settle = (at: number, finish: () => void): void => {
        this.#process.deliver(at, () => {
          if (settled) return;
          settled = true;
          this.#underWay.delete(breaks);
          finish();
        });
      };
      const breaks = (): void => {
        world.note(this.#process.name, () => `connection lost: ${what()}`);
        settle(world.now, () => reject(new ConnectionLost('the connection was reset')));
      };
      const getsNoAnswer = (kind: string): void => {
        this.#count(kind, what);
        const noticed = random.chance(0.5) ? random.next() * NOTICED_AFTER_MS : NOTICED_AFTER_MS;
        settle(Math.min(giveUpAt, world.now + noticed), () => {
          this.#reconnect();
          reject(new ConnectionLost('no answer'));
        });
      };
      let hasSecond = false;
      const sends = (arrival: number, isLast: boolean, isResent: boolean, answering = connection): void => {
        const arrive = (): void => {
          if (world.now < this.#requestsBlockedUntil) {
            if (isLast) getsNoAnswer('partition');
            return;
          }
          if (this.#store.isAway) {
            if (isLast)
              settle(this.#replyTime(answering), () => reject(new ConnectionLost('connection refused')));
            return;
          }
          const { standsStillUntil = 0 } = this.#store;
          if (world.now < standsStillUntil) return void world.schedule(standsStillUntil, arrive);
          world.note(this.#store.name, () => `${this.#process.name}: ${what()}${isResent ? ' (again)' : ''}`);
          let outcome: () => void;
          try {
            const value = execute();
            outcome = () => resolve({ value, resent: isResent });
          } catch (error) {
            outcome = () => reject(error);
          }
          if (!isLast) {
            if (hasSecond) this.onLateCopy(what());
            return;
          }
          hasSecond = true;
          if (world.now < this.#repliesBlockedUntil) return getsNoAnswer('partition');
          if (random.chance(lostReplies)) return getsNoAnswer('lost reply');
          const replyAt = this.#replyTime(answering);
          settle(replyAt, outcome);
        };
        world.schedule(arrival, arrive);
      };
      this.#underWay.add(breaks);
      if (random.chance(lostRequests)) return getsNoAnswer('lost request');
      const arrival = this.#arrivalTime(connection);
      if (!random.chance(resent)) return sends(arrival, true, false);
      this.#count('resent request', what);
      this.#reconnect();
      // The old connection may still carry the first copy when the second one is executed, and what the client sends after it.
      const second = Math.max(arrival, world.now + this.#delay()) + random.next() * this.#options.slowMs;
      const first = random.chance(0.5) ? arrival : second + random.next() * this.#options.slowMs;
      sends(first, false, false);
      const next = this.#connections[use];
      sends(this.#options.ordered ? next.requestArrives(second) : second, true, true, next);
    });
    this.#process.passes('after sending');
    return answer;
  }

  /** A message that the store sends by itself. */
  push(what: () => string, receive: () => void): void {
    const world = this.#world;
    if (world.now < this.#repliesBlockedUntil || this.#random.chance(this.#options.lostPushes)) {
      this.#count('lost push', what);
      return;
    }
    const arrival = this.#replyTime(this.#connections.messages);
    this.#process.deliver(arrival, receive);
  }

  /**
   * Opens a stream of messages in both directions.
   *
   * @param broken - called when the process finds that the stream is broken
   */
  openStream(broken: () => void): LinkStream {
    const stream = new LinkStream(
      {
        world: this.#world,
        process: this.#process,
        store: this.#store,
        random: this.#random,
        rates: () => this.#options,
        delay: () => this.#delay(),
        isBlocked: (direction) =>
          this.#world.now <
          (direction === 'requests' ? this.#requestsBlockedUntil : this.#repliesBlockedUntil),
      },
      () => {
        this.#streams.delete(stream);
        broken();
      },
    );
    for (const other of this.#streams) if (!other.isOpen) this.#streams.delete(other);
    this.#streams.add(stream);
    return stream;
  }

  /** From here on the client uses new connections. What is under way on those of before may arrive later, or never. */
  #reconnect(): void {
    this.#reconnects += 1;
    this.#connections = connect();
  }

  #arrivalTime(connection: Connection): number {
    const arrival = this.#world.now + this.#delay();
    return this.#options.ordered ? connection.requestArrives(arrival) : arrival;
  }

  #replyTime(connection: Connection): number {
    const reply = this.#world.now + this.#delay();
    return this.#options.ordered ? connection.replyArrives(reply) : reply;
  }

  #delay(): number {
    const { latencyMs, slow, slowMs } = this.#options;
    const usual = latencyMs * (1 + this.#random.next());
    if (slow === 0 || !this.#random.chance(slow)) return usual;
    this.#world.countFault('slow message');
    return usual + this.#random.next() * slowMs;
  }

  #count(kind: string, what: () => string): void {
    this.#world.countFault(kind);
    this.#world.note(this.#process.name, () => `${kind}: ${what()}`);
  }
}

function connect(): Readonly<Record<ConnectionUse, Connection>> {
  return { requests: new Connection(), messages: new Connection() };
}
