import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import { NodeTree, type Transaction } from './node-tree.ts';
import { type Forwarded, ServerConnection, type ServerWire } from './server-connection.ts';

type Applied = (transaction: Transaction) => void;

/** What comes from a server to the leader. */
export interface Origin {
  readonly server: Member;
  readonly session: number;
  /** Called when that server has carried it out. */
  readonly applied: Applied;
}

/** The others, as a server knows them. */
export interface Quorum {
  readonly world: World;
  readonly random: SeededRandom;
  /** How long a message between two servers takes, and how far a follower is behind at most, in milliseconds. */
  readonly hopMs: number;
  readonly lagMs: () => number;
  readonly tickMs: number;
  isLeader(server: Member): boolean;
  decide(what: Forwarded, origin: Origin): void;
  touch(session: number): boolean;
  /** The timeout of a session that goes on by this server; `undefined`: it has ended. */
  moves(session: number, server: Member): number | undefined;
  /** What is agreed on, from this position on. */
  agreedFrom(
    position: number,
  ): readonly { readonly transaction: Transaction; readonly origin: Origin | undefined }[];
}

/** One server of an ensemble: it answers reads from what it knows, and sends writes to the leader. */
export class Member {
  readonly name: string;
  tree = new NodeTree();
  readonly #quorum: Quorum;
  readonly #connections = new Set<ServerConnection>();
  readonly #watches = new Map<string, Set<ServerConnection>>();
  /** Sessions that have shown a sign of life since the last report to the leader. */
  readonly #touched = new Set<number>();
  #reportsAt = 0;
  #applied = 0;
  #lastToLeader = 0;
  #lastFromLeader = 0;
  /** True time until which nothing passes between it and the others. */
  #cutUntil = 0;
  #refusesUntil = 0;
  /** Counts how often it has lost its leader: what was under way then is lost. */
  #losses = 0;

  constructor(quorum: Quorum, name: string) {
    this.#quorum = quorum;
    this.name = name;
  }

  get serves(): boolean {
    return this.#quorum.world.now >= this.#refusesUntil;
  }

  get isCut(): boolean {
    return this.#quorum.world.now < this.#cutUntil;
  }

  /** Takes a connection; `undefined`: it refuses. */
  accept(wire: ServerWire): ServerConnection | undefined {
    if (!this.serves) return undefined;
    const connection = new ServerConnection(this, wire);
    this.#connections.add(connection);
    return connection;
  }

  left(connection: ServerConnection): void {
    this.#connections.delete(connection);
    for (const watching of this.#watches.values()) watching.delete(connection);
  }

  watch(path: string, connection: ServerConnection): void {
    const watching = this.#watches.get(path) ?? new Set();
    this.#watches.set(path, watching.add(connection));
  }

  /** A client has come back: its connection of before ends. */
  takeOver(session: number, by: ServerConnection): void {
    for (const other of this.#connections) if (other !== by && other.session === session) other.close();
  }

  /** A client has shown a sign of life; `false`: its session has ended, as only the leader knows. */
  touch(session: number): boolean {
    if (this.#quorum.isLeader(this)) return this.#quorum.touch(session);
    this.#touched.add(session);
    this.#reportLater();
    return true;
  }

  forward(what: Forwarded, session: number, applied: Applied): void {
    this.#toLeader(() => this.#quorum.decide(what, { server: this, session, applied }));
  }

  revalidate(session: number, tell: (timeoutMs: number | undefined) => void): void {
    this.#toLeader(() => {
      const timeoutMs = this.#quorum.moves(session, this);
      this.#fromLeader(() => tell(timeoutMs));
    });
  }

  /** The leader has told that the others agreed on something. */
  hearsOfAgreement(): void {
    const { random, lagMs } = this.#quorum;
    this.#fromLeader(() => this.catchUp(), random.next() * lagMs());
  }

  /** Carries out what is agreed on. */
  catchUp(): void {
    for (const { transaction, origin } of this.#quorum.agreedFrom(this.#applied)) {
      this.#applied += 1;
      const deleted = this.tree.apply(transaction);
      for (const path of deleted) {
        const watching = this.#watches.get(path) ?? [];
        this.#watches.delete(path);
        for (const connection of watching) connection.deleted(path);
      }
      if (origin?.server === this) origin.applied(transaction);
      const { change } = transaction;
      if (change.kind !== 'end session') continue;
      for (const connection of [...this.#connections])
        if (connection.session === change.session) connection.close();
    }
  }

  cut(ms: number): void {
    this.#cutUntil = Math.max(this.#cutUntil, this.#quorum.world.now + ms);
  }

  /** It has no leader until then, and serves nobody. */
  loseLeader(until: number): void {
    this.#losses += 1;
    this.#refusesUntil = Math.max(this.#refusesUntil, this.#cutUntil, until);
    this.#touched.clear();
    for (const connection of [...this.#connections]) connection.close();
    this.#quorum.world.schedule(this.#refusesUntil, () => this.catchUp());
  }

  #reportLater(): void {
    const { world, tickMs } = this.#quorum;
    if (this.#reportsAt > world.now) return;
    const half = tickMs / 2;
    this.#reportsAt = (Math.floor(world.now / half) + 1) * half;
    world.schedule(this.#reportsAt, () => {
      const sessions = [...this.#touched];
      this.#touched.clear();
      this.#toLeader(() => sessions.forEach((session) => this.#quorum.touch(session)));
    });
  }

  #toLeader(happen: () => void): void {
    const { world, random, hopMs } = this.#quorum;
    if (this.#quorum.isLeader(this)) return happen();
    this.#lastToLeader = Math.max(this.#lastToLeader, world.now + hopMs * (1 + random.next()));
    this.#between(this.#lastToLeader, happen);
  }

  #fromLeader(happen: () => void, extraMs = 0): void {
    const { world, random, hopMs } = this.#quorum;
    if (this.#quorum.isLeader(this)) return happen();
    this.#lastFromLeader = Math.max(this.#lastFromLeader, world.now + hopMs * (1 + random.next()) + extraMs);
    this.#between(this.#lastFromLeader, happen);
  }

  /** What is held up by a cut arrives after it, unless the server has lost its leader by then. */
  #between(at: number, happen: () => void): void {
    const losses = this.#losses;
    const { world } = this.#quorum;
    const arrive = (): void => {
      if (losses !== this.#losses) return;
      if (this.isCut) world.schedule(this.#cutUntil, arrive);
      else happen();
    };
    world.schedule(at, arrive);
  }
}
