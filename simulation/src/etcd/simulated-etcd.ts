import type {
  ILeaseKeepAliveResponse,
  IRangeRequest,
  IRangeResponse,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
} from 'etcd3';
import type { World } from '../kernel/world.ts';
import { EtcdLeaseInvalidError } from './etcd-failures.ts';
import { SimulatedLeases } from './simulated-leases.ts';
import { Transactions } from './transactions.ts';
import { type KeyEvent, VersionedKeys } from './versioned-keys.ts';
import { type Told, Watchers } from './watchers.ts';

/** A server looks for watches that are behind so often, in milliseconds. */
const CATCHES_UP_EVERY_MS = 100;
const MEMBER = '10276657743932975437';
const CLUSTER = '14841639068965178418';

export interface EtcdOptions {
  readonly drift: number;
  readonly shortestSeconds: number;
  readonly idleUntil: () => number;
  /** Called after each transaction that wrote something, and after each end of a lease that had keys. */
  readonly written: (events: readonly KeyEvent[], by: 'transaction' | 'end of a lease') => void;
}

/** A stream of watches of one client. */
export interface WatchSession {
  received(request: IWatchRequest): void;
  close(): void;
}

/** A stream of keep-alives of one client. */
export interface KeepAliveSession {
  received(lease: string): void;
  close(): void;
}

interface OldLeader {
  readonly until: number;
  readonly raftTerm: number;
  readonly leases: ReadonlyMap<string, number>;
}

/** A cluster of etcd as its clients see it: one state, which all agreed on, and a leader with a term. */
export class SimulatedEtcd {
  readonly keys = new VersionedKeys();
  readonly #world: World;
  readonly #options: EtcdOptions;
  readonly #leases: SimulatedLeases;
  readonly #transactions: Transactions;
  readonly #watching = new Set<Watchers>();
  readonly #keptAlive = new Set<KeepAliveSession>();
  /** Each ends one stream, as a member does that shuts down. */
  readonly #ends = new Map<object, () => void>();
  #raftTerm = 2;
  #oldLeader: OldLeader | undefined;
  #willCatchUp = false;

  constructor(world: World, options: EtcdOptions) {
    this.#world = world;
    this.#options = options;
    const { drift, shortestSeconds, idleUntil } = options;
    this.#leases = new SimulatedLeases(world, {
      drift,
      shortestSeconds,
      idleUntil,
      ended: (keys) => {
        for (const key of keys) this.keys.delete(key);
        this.#commit('end of a lease');
      },
    });
    this.#transactions = new Transactions({
      keys: this.keys,
      header: () => this.#header(),
      hasLease: (id) => this.#leases.has(id),
      attach: (...change) => this.#leases.attach(...change),
    });
  }

  txn(request: ITxnRequest): ITxnResponse {
    const response = this.#transactions.execute(request);
    this.#commit('transaction');
    return response;
  }

  range(request: IRangeRequest): IRangeResponse {
    return this.#transactions.range(request);
  }

  leaseGrant(seconds: number) {
    const { id, ttlSeconds } = this.#leases.grant(seconds);
    return { header: this.#header(), ID: id, TTL: String(ttlSeconds), error: '' };
  }

  leaseRevoke(id: string) {
    if (!this.#leases.revoke(id)) throw new EtcdLeaseInvalidError('etcdserver: requested lease not found');
    return { header: this.#header() };
  }

  leaseTimeToLive(id: string) {
    const { left, granted } = this.#leases.timeToLive(id) ?? { left: -1, granted: 0 };
    return { header: this.#header(), ID: id, TTL: String(left), grantedTTL: String(granted), keys: [] };
  }

  /** Opens a stream of keep-alives: one is answered after the other. */
  keepAlives(tell: (response: ILeaseKeepAliveResponse) => void, end: () => void): KeepAliveSession {
    const queue: string[] = [];
    let isAnswering = false;
    // The member that the client has chosen, which may have been the leader before an election.
    const isFollower = this.#world.random.chance(0.5);
    const next = (): void => {
      const [id] = queue;
      if (isAnswering || id === undefined) return;
      isAnswering = true;
      // The header is made before the lease is renewed.
      const { raftTerm, ...old } = this.#leaderAt(isFollower);
      const header = { ...this.#header(), raft_term: String(raftTerm) };
      const answer = (ttlSeconds: number): void => {
        queue.shift();
        isAnswering = false;
        if (this.#keptAlive.has(session)) tell({ header, ID: id, TTL: String(ttlSeconds) });
        next();
      };
      if (old.leases === undefined) this.#leases.keepAlive(id, answer);
      else answer(old.leases.get(id) ?? 0);
    };
    const session: KeepAliveSession = {
      received: (id) => {
        queue.push(id);
        next();
      },
      close: () => {
        this.#keptAlive.delete(session);
        this.#ends.delete(session);
      },
    };
    this.#keptAlive.add(session);
    this.#ends.set(session, end);
    return session;
  }

  watches(tell: Told, end: () => void): WatchSession {
    const watchers = new Watchers(this.keys, () => this.#header() as IWatchResponse['header'], tell);
    this.#watching.add(watchers);
    this.#ends.set(watchers, end);
    return {
      received: (request) => {
        watchers.received(request);
        this.#catchUpSoon();
      },
      close: () => {
        this.#watching.delete(watchers);
        this.#ends.delete(watchers);
      },
    };
  }

  /** Another leader is elected. Until `oldUntil` the one before answers some keep-alives from what it remembers. */
  elect(oldUntil: number): void {
    this.#oldLeader = {
      until: oldUntil,
      raftTerm: this.#raftTerm,
      leases: this.#leases.remembered(),
    };
    this.#raftTerm += this.#world.random.between(1, 2);
    this.#leases.renewAll();
  }

  compact(): void {
    this.keys.compact();
  }

  /** The server ends all streams. */
  endStreams(): void {
    for (const end of this.#ends.values()) end();
  }

  #leaderAt(isFollower: boolean): Partial<OldLeader> {
    const old = this.#oldLeader;
    const isOld = old !== undefined && this.#world.now < old.until && !isFollower;
    return isOld ? old : { raftTerm: this.#raftTerm };
  }

  #commit(by: 'transaction' | 'end of a lease'): void {
    const events = this.keys.commit();
    if (events.length === 0) return;
    this.#options.written(events, by);
    const watchers = [...this.#watching].flatMap((each) =>
      each.all.map((watcher) => () => each.written(watcher, events)),
    );
    // Which watch is told first is the chance of the server.
    const from = watchers.length > 1 ? this.#world.random.between(0, watchers.length - 1) : 0;
    for (const tell of [...watchers.slice(from), ...watchers.slice(0, from)]) tell();
  }

  #catchUpSoon(): void {
    const isBehind = [...this.#watching].some(({ all }) => all.some(({ isAtPresent }) => !isAtPresent));
    if (!isBehind || this.#willCatchUp) return;
    this.#willCatchUp = true;
    const at = Math.max(
      (Math.floor(this.#world.now / CATCHES_UP_EVERY_MS) + 1) * CATCHES_UP_EVERY_MS,
      this.#options.idleUntil(),
    );
    this.#world.schedule(at, () => {
      this.#willCatchUp = false;
      if (this.#world.now < this.#options.idleUntil()) return this.#catchUpSoon();
      for (const watchers of this.#watching) watchers.catchUp();
    });
  }

  #header(): ITxnResponse['header'] {
    return {
      cluster_id: CLUSTER,
      member_id: MEMBER,
      revision: String(this.keys.answered),
      raft_term: String(this.#raftTerm),
    };
  }
}
