import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import { Member, type Origin, type Quorum } from './member.ts';
import { type Change, nameOf, type NodeChange, NodeTree, parentOf, type Transaction } from './node-tree.ts';
import type { NodeWrite } from './request.ts';
import type { Forwarded } from './server-connection.ts';
import { SessionTracker } from './session-tracker.ts';

export interface ZookeeperServers {
  readonly members: number;
  /** How much faster than true time the clocks of the servers run. */
  readonly drift: number;
  readonly tickMs: number;
  /** How long a follower serves without a leader, in milliseconds. */
  readonly syncMs: number;
  readonly hopMs: number;
  readonly lagMs: () => number;
  /** True time until which no server does anything. */
  readonly standsStillUntil: () => number;
  /** Called after each transaction that most servers agreed on. */
  readonly agreed: (transaction: Transaction) => void;
}

interface Entry {
  readonly transaction: Transaction;
  readonly origin: Origin | undefined;
}

const NO_NODE = -101;
const BAD_VERSION = -103;
const NO_CHILDREN_FOR_EPHEMERALS = -108;
const NODE_EXISTS = -110;
const NOT_EMPTY = -111;
const SESSION_EXPIRED = -112;
/** Of a write in a transaction behind one that is refused. */
const NOT_LOOKED_AT = -2;
const EPHEMERAL = 1;
const SEQUENTIAL = 2;
/** A transaction id counts the leaders in its upper half. */
const EPOCH = 2 ** 32;
/** Servers grant sessions of two ticks at least. */
const LEAST_TICKS = 2;
/** What `Date.now()` of the leader says when a run begins. */
const BEGAN_AT = 1_790_000_000_000;

/** An ensemble of ZooKeeper: a leader that decides, followers that may be behind, and a log on which most agree. */
export class SimulatedZookeeper {
  /** What most servers agree on. */
  readonly truth = new NodeTree();
  readonly members: readonly Member[];
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #servers: ZookeeperServers;
  /** With what the leader has decided, and most do not know. */
  #decided = new NodeTree();
  readonly #log: Entry[] = [];
  #agreed = 0;
  #agreesAt = 0;
  #zxid = EPOCH;
  #sessions = 0;
  #leader: Member | undefined;
  #tracker: SessionTracker;
  /** Counts the elections. */
  #term = 0;

  constructor(world: World, random: SeededRandom, servers: ZookeeperServers) {
    this.#world = world;
    this.#random = random;
    this.#servers = servers;
    const quorum: Quorum = {
      world,
      random,
      ...servers,
      isLeader: (server) => server === this.#leader,
      decide: (what, origin) => this.#decide(what, origin),
      touch: (session) => this.#tracker.touch(session),
      moves: (session, server) => this.#tracker.moves(session, server),
      agreedFrom: (position) => this.#log.slice(position, this.#agreed),
    };
    this.members = Array.from({ length: servers.members }, (_, index) => new Member(quorum, `zk${index}`));
    this.#leader = this.members[0];
    this.#tracker = this.#track();
  }

  /** A follower is cut off from the others: for some time it goes on without a leader. */
  cutFollower(ms: number): void {
    const followers = this.members.filter((member) => member !== this.#leader && member.serves);
    if (followers.length === 0) return;
    const follower = this.#random.pick(followers);
    follower.cut(ms);
    this.#loseAfterSync(follower, ms);
  }

  /**
   * The leader is gone, and another one follows after this time. What the former one has decided, and did not tell everybody, may be
   * kept in part. It is cut off: for some time it goes on to answer reads.
   */
  elect(downMs: number, oldMs: number): void {
    const former = this.#leader;
    const { now } = this.#world;
    const until = now + downMs;
    this.#term += 1;
    this.#tracker.stop();
    this.#leader = undefined;
    const undecided = this.#log.length - this.#agreed;
    this.#log.length = this.#agreed + this.#random.between(0, undecided);
    for (const member of this.members) if (member !== former || oldMs === 0) member.loseLeader(until);
    if (former !== undefined && oldMs > 0) {
      former.cut(oldMs);
      const servesMs = Math.min(oldMs, this.#servers.syncMs);
      this.#world.schedule(now + servesMs, () => former.loseLeader(until));
    }
    const term = this.#term;
    this.#world.schedule(until, () => {
      if (term === this.#term) this.#lead(oldMs > 0 ? former : undefined);
    });
  }

  #lead(former: Member | undefined): void {
    this.#leader = this.#random.pick(this.members.filter((member) => member !== former));
    this.#world.note('zookeeper', () => `${this.#leader?.name} leads`);
    this.#zxid = (Math.floor(this.#zxid / EPOCH) + 1) * EPOCH;
    this.#decided = new NodeTree();
    for (const { transaction } of this.#log) this.#decided.apply(transaction);
    this.#tracker = this.#track();
    while (this.#agreed < this.#log.length) this.#agree();
    for (const member of this.members) if (!member.isCut) member.catchUp();
  }

  #track(): SessionTracker {
    const { drift, tickMs, standsStillUntil } = this.#servers;
    const options = {
      random: this.#random,
      drift,
      tickMs,
      idleUntil: standsStillUntil,
      expired: (session: number) => this.#accept({ kind: 'end session', session }, undefined),
    };
    return new SessionTracker(this.#world, options, this.#decided.sessions);
  }

  #loseAfterSync(follower: Member, ms: number): void {
    const { syncMs } = this.#servers;
    if (ms <= syncMs) return;
    const { now } = this.#world;
    const term = this.#term;
    this.#world.schedule(now + syncMs, () => {
      if (term !== this.#term || !follower.isCut) return;
      follower.loseLeader(now + ms);
    });
  }

  #decide(what: Forwarded, origin: Origin): void {
    if (this.#leader === undefined) return;
    const change = this.#changeOf(what, origin);
    const { session, server } = origin;
    if (change.kind === 'new session') this.#tracker.add(change.session, change.timeoutMs, server);
    if (change.kind === 'end session') this.#tracker.ends(session);
    this.#accept(change, origin);
  }

  #changeOf(what: Forwarded, { session, server }: Origin): Change {
    if (what.kind === 'new session') {
      this.#sessions += 1;
      const timeoutMs = Math.max(what.timeoutMs, LEAST_TICKS * this.#servers.tickMs);
      return { kind: 'new session', session: EPOCH + this.#sessions, timeoutMs };
    }
    if (what.kind === 'end session') return { kind: 'end session', session };
    const code = this.#tracker.refusalOf(session, server);
    if (code !== undefined)
      return what.kind === 'transaction' && code === SESSION_EXPIRED
        ? refusalOfSeveral(what.writes, 0, code)
        : { kind: 'refusal', code };
    if (what.kind === 'transaction') return this.#changeTogether(what.writes, session);
    return changeIn(this.#decided, what, session);
  }

  #changeTogether(writes: readonly NodeWrite[], session: number): Change {
    const tree = this.#decided.copy();
    const changes: NodeChange[] = [];
    for (const write of writes) {
      const change = changeIn(tree, write, session);
      if (change.kind === 'refusal') return refusalOfSeveral(writes, changes.length, change.code);
      tree.apply({ zxid: this.#zxid + 1, at: 0, change });
      changes.push(change);
    }
    return { kind: 'several', changes };
  }

  #accept(change: Change, origin: Origin | undefined): void {
    const { drift, hopMs } = this.#servers;
    this.#zxid += 1;
    const at = BEGAN_AT + Math.floor(this.#world.now * (1 + drift));
    const transaction: Transaction = { zxid: this.#zxid, at, change };
    this.#decided.apply(transaction);
    this.#log.push({ transaction, origin });
    const count = this.#log.length;
    const term = this.#term;
    this.#agreesAt = Math.max(this.#agreesAt, this.#world.now + hopMs * (1 + this.#random.next()));
    this.#world.schedule(this.#agreesAt, () => {
      if (term !== this.#term) return;
      while (this.#agreed < count) this.#agree();
      for (const member of this.members) member.hearsOfAgreement();
    });
  }

  #agree(): void {
    const { transaction } = this.#log[this.#agreed] as Entry;
    this.#agreed += 1;
    this.truth.apply(transaction);
    if (transaction.change.kind === 'end session') this.#tracker.ended(transaction.change.session);
    this.#servers.agreed(transaction);
  }
}

type Refusal = Extract<Change, { kind: 'refusal' }>;

/** What a write does to the nodes as they stand. */
function changeIn(tree: NodeTree, write: NodeWrite, session: number): NodeChange | Refusal {
  return write.kind === 'create' ? createIn(tree, write, session) : deleteIn(tree, write);
}

function createIn(
  tree: NodeTree,
  { path: given, data, flags }: Extract<NodeWrite, { kind: 'create' }>,
  session: number,
): NodeChange | Refusal {
  const parent = tree.get(parentOf(given));
  if (parent === undefined) return { kind: 'refusal', code: NO_NODE };
  const path = (flags & SEQUENTIAL) === 0 ? given : given + String(parent.childrenCreated).padStart(10, '0');
  if (tree.get(path) !== undefined) return { kind: 'refusal', code: NODE_EXISTS };
  if (parent.owner !== 0) return { kind: 'refusal', code: NO_CHILDREN_FOR_EPHEMERALS };
  return { kind: 'create', path, data, owner: (flags & EPHEMERAL) === 0 ? 0 : session };
}

function deleteIn(
  tree: NodeTree,
  { path, version }: Extract<NodeWrite, { kind: 'delete' }>,
): NodeChange | Refusal {
  const node = tree.get(path);
  if (node === undefined || nameOf(path) === '') return { kind: 'refusal', code: NO_NODE };
  if (version > 0) return { kind: 'refusal', code: BAD_VERSION };
  return node.children.size > 0 ? { kind: 'refusal', code: NOT_EMPTY } : { kind: 'delete', path };
}

/** Those before the refused one would have been carried out; those behind it were not looked at. */
function refusalOfSeveral(writes: readonly NodeWrite[], refused: number, code: number): Change {
  const codes = writes.map((_, at) => (at < refused ? 0 : at === refused ? code : NOT_LOOKED_AT));
  return { kind: 'refusal of several', codes };
}
