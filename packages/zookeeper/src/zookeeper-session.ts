import type { LossReason } from '@locks/core';
import {
  type ChildList,
  type ClientPort,
  hasCode,
  ifPresent,
  type NodeContent,
  ZooKeeperError,
} from './client-port.ts';
import { REPORTED, SessionValidity } from './session-validity.ts';
import { ZookeeperQueue } from './zookeeper-queue.ts';
import { Watches } from './watches.ts';

/** A node that never exists. Deleting it is a write that changes nothing and needs a leader with a quorum. */
const PROBE = '/locks-backend-probe';
/** The part of the session timeout after which a server that is silent since a probe is left for another one. */
const SUSPICIOUS = 1 / 6;
/** The most deletes in flight: the event loop must read answers between the deletes of thousands of holds that end together. */
const DELETES_AT_ONCE = 256;

/** A timer may fire so much too early. */
const ROUNDING_MS = 2;

/** An acquisition that holds or waits in a session, as far as the session deals with it. */
export interface SessionMember {
  /** The path of the resource's node. */
  readonly parent: string;
  readonly abandoned: boolean;
  readonly isLeaving: boolean;
  lose(reason: LossReason): void;
  gone(): void;
}

/** A queue, and the list that shows it. */
export interface QueueOfTurn {
  readonly list: ChildList;
  readonly queue: ZookeeperQueue;
}

/** One session with ZooKeeper, from its first use to its end, with all acquisitions that hold or wait in it. */
export class ZookeeperSession<Member extends SessionMember = SessionMember> {
  readonly id: string;
  readonly timeoutMs: number;
  readonly port: ClientPort;
  readonly now: () => number;
  readonly watches: Watches;
  /** The acquisitions that hold or wait, by id. */
  readonly contenders = new Map<string, Member>();
  /** The acquisitions whose nodes could not be deleted yet: the path of the resource's node by acquisition id. */
  readonly pendingDeletes = new Map<string, string>();
  /** The session as a grant refers to it. */
  readonly tenure = { validUntil: (): number => this.#validity.validUntil };
  readonly #validity: SessionValidity;
  readonly #queuesOfTurn = new Map<string, Promise<QueueOfTurn>>();
  readonly #pending = new Set<(error: ZooKeeperError) => void>();
  readonly #toDelete: (() => void)[] = [];
  #deleting = 0;
  readonly #onEnd: () => void;
  readonly #unlisten: () => void;
  #ended = false;
  #connected = true;
  #proven = false;
  /** The time at which a server last answered any request. */
  #heardAt = Number.NEGATIVE_INFINITY;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #watchdog: NodeJS.Timeout | undefined;
  #nextServerTimer: NodeJS.Timeout | undefined;

  /** @param heardAt - the earliest moment at which the servers may have heard of the session last */
  constructor(port: ClientPort, now: () => number, heardAt: number, onEnd: () => void) {
    this.port = port;
    this.id = port.sessionId;
    this.timeoutMs = port.sessionTimeoutMs;
    this.now = now;
    this.#validity = new SessionValidity(this.timeoutMs, heardAt);
    this.#onEnd = onEnd;
    this.watches = new Watches((path, changed) => this.ask(() => port.read(path, changed)));
    this.#unlisten = port.onChange(() => this.#changed());
    this.#watch(heardAt + this.timeoutMs);
    this.#heartbeat();
  }

  get ended(): boolean {
    return this.#ended;
  }

  get connected(): boolean {
    return !this.#ended && this.port.state === 'connected';
  }

  /** Sends one request, at once or not at all; rejects when the session ends. */
  ask<T>(send: () => Promise<T>): Promise<T> {
    if (this.#ended) return Promise.reject(expired());
    // Clients would keep the request and send it after a reconnect, when its result is no longer wanted.
    if (!this.connected) return Promise.reject(notConnected());
    return new Promise<T>((resolve, reject) => {
      this.#pending.add(reject);
      send()
        .finally(() => {
          this.#pending.delete(reject);
          this.#heardAt = this.now();
        })
        .then(resolve, (error: unknown) => {
          if (hasCode(error, 'SESSION_EXPIRED')) this.end();
          reject(error);
        });
    });
  }

  /** Records that a write which was sent at `sentAt` was answered: the session lived then. */
  proven(sentAt: number): void {
    // ClickHouse Keeper gives a new session at a reconnect without notice.
    if (this.port.sessionId !== this.id) return this.end();
    // The leases may have been reported as lost: a session that was not proven in time stays lost.
    if (this.#proven && this.now() >= this.#validity.validUntil) return this.end();
    if (this.#ended) return;
    this.#proven = true;
    this.#validity.proven(sentAt, this.now());
  }

  /** Makes later reads at least as new as this moment, whichever server answers. */
  async barrier(): Promise<void> {
    const sentAt = this.now();
    try {
      await this.ask(() => this.port.remove(PROBE));
    } catch (error) {
      if (!hasCode(error, 'NO_NODE', 'NO_AUTH')) throw error;
    }
    this.proven(sentAt);
  }

  /**
   * Lists the queue under `parent` once for all who ask in one iteration of the event loop, after what they sent in that turn: a
   * thousand acquisitions that come together would list a thousand names each.
   */
  queueOfTurn(parent: string): Promise<QueueOfTurn> {
    const asked = this.#queuesOfTurn.get(parent);
    if (asked !== undefined) return asked;
    const queue = new Promise<ChildList>((resolve) => {
      process.nextTick(() => {
        this.#queuesOfTurn.delete(parent);
        resolve(this.ask(() => this.port.children(parent)));
      });
    }).then((list) => ({ list, queue: new ZookeeperQueue(list.names) }));
    this.#queuesOfTurn.set(parent, queue);
    return queue;
  }

  /** Reads the queue under `parent`. */
  async queue(parent: string): Promise<ZookeeperQueue> {
    return new ZookeeperQueue(await this.children(parent));
  }

  /** The names of the children of a node; none if there is no such node. */
  async children(path: string): Promise<readonly string[]> {
    return (await ifPresent(this.ask(() => this.port.children(path))))?.names ?? [];
  }

  /** Reads a node; `undefined` if there is none. */
  async read(path: string): Promise<NodeContent | undefined> {
    return await ifPresent(this.ask(() => this.port.read(path, undefined)));
  }

  /** Deletes nodes at the end of a hold or wait, when its turn has come: a bounded number at once. */
  async limited<T>(remove: () => Promise<T>): Promise<T> {
    if (this.#deleting >= DELETES_AT_ONCE)
      await new Promise<void>((admit) => void this.#toDelete.push(admit));
    else this.#deleting += 1;
    try {
      return await remove();
    } finally {
      const admit = this.#toDelete.shift();
      if (admit === undefined) this.#deleting -= 1;
      else admit();
    }
  }

  /** Deletes all nodes of an acquisition, known or not; the heartbeat repeats a failed delete. */
  async deleteNodes(acquisitionId: string, parent: string): Promise<boolean> {
    this.pendingDeletes.set(acquisitionId, parent);
    // The present contender is ended, not one that is made meanwhile.
    const contender = this.contenders.get(acquisitionId);
    const [, queue] = await Promise.all([this.barrier(), this.queue(parent)]);
    const removed = await Promise.all(
      queue.nodesOf(acquisitionId).map(({ name }) => this.remove(`${parent}/${name}`)),
    );
    this.pendingDeletes.delete(acquisitionId);
    contender?.gone();
    return removed.includes(true);
  }

  /** Deletes a node; `false` if there was none. */
  async remove(path: string): Promise<boolean> {
    const sentAt = this.now();
    const removed = await ifPresent(this.ask(() => this.port.remove(path).then(() => true)));
    this.proven(sentAt);
    return removed ?? false;
  }

  /** Ends the session: all its leases are lost at once (docs/spec.md §12.1). */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#validity.end();
    clearTimeout(this.#heartbeatTimer);
    clearTimeout(this.#watchdog);
    clearInterval(this.#nextServerTimer);
    this.#unlisten();
    // The nodes live on if the client stays in the same session: the next session object deletes them.
    for (const [acquisitionId, { parent }] of this.contenders) this.pendingDeletes.set(acquisitionId, parent);
    for (const contender of [...this.contenders.values()]) contender.lose('session-lost');
    for (const reject of this.#pending) reject(expired());
    this.#pending.clear();
    this.watches.end();
    this.#onEnd();
  }

  #changed(): void {
    if (this.port.state === 'ended') return this.end();
    const { connected } = this;
    if (connected && this.port.sessionId !== this.id) return this.end();
    const again = connected && !this.#connected;
    this.#connected = connected;
    clearInterval(this.#nextServerTimer);
    // The client would wait for a server that accepts the connection and says nothing until the session is over.
    if (!connected)
      this.#nextServerTimer = setInterval(
        () => this.port.tryNextServer?.(),
        handshakeMs(this.timeoutMs),
      ).unref();
    if (!again) return;
    this.#heartbeat();
    void this.watches.verify();
  }

  /** Sends one small write for all leases, every third of the session timeout and after a reconnect. */
  #heartbeat(): void {
    this.#heartbeatIn(this.timeoutMs / 3);
    if (this.connected) void this.#probe();
  }

  #heartbeatIn(ms: number): void {
    clearTimeout(this.#heartbeatTimer);
    this.#heartbeatTimer = setTimeout(() => this.#heartbeat(), ms).unref();
  }

  async #probe(): Promise<void> {
    const sentAt = this.now();
    const tryNextServer = (): void => {
      // A server that is only slow still answers earlier requests.
      if (this.#heardAt < sentAt && this.connected && this.port.hasChoice) this.port.tryNextServer?.();
    };
    // After a pause of this process the answer may be in the socket, and is read only after the timers have run.
    const silent = setTimeout(() => setImmediate(tryNextServer), this.timeoutMs * SUSPICIOUS).unref();
    try {
      await this.barrier();
      // A write that is sent sooner after a slow answer would not show that the session was reported.
      if (this.now() - sentAt > this.timeoutMs * (1 / 3 - REPORTED) && !this.#ended)
        this.#heartbeatIn(this.timeoutMs * REPORTED + ROUNDING_MS);
      for (const [acquisitionId, parent] of [...this.pendingDeletes]) {
        // The nodes may have been deleted meanwhile, and the acquisition may be in the queue again.
        const contender = this.contenders.get(acquisitionId);
        const isOver = contender === undefined || (contender.abandoned && !contender.isLeaving);
        if (isOver && this.pendingDeletes.has(acquisitionId)) await this.deleteNodes(acquisitionId, parent);
      }
    } catch {
      // A failed probe is ignored: the next one may be answered; if not, the watchdog ends the session.
    } finally {
      clearTimeout(silent);
    }
  }

  /** Ends the session when its validity is over, whatever the network does. */
  #watch(until: number): void {
    this.#watchdog = setTimeout(
      () => {
        const { validUntil } = this.#validity;
        if (this.now() < Math.max(until, validUntil)) this.#watch(Math.max(until, validUntil));
        else this.end();
      },
      Math.max(1, Math.ceil(until - this.now())),
    ).unref();
  }
}

/** The time limit for a server to complete a handshake. */
export function handshakeMs(sessionTimeoutMs: number): number {
  return Math.max(1_000, sessionTimeoutMs * SUSPICIOUS);
}

export function expired(): ZooKeeperError {
  return new ZooKeeperError('SESSION_EXPIRED', 'The session with ZooKeeper has ended.');
}

export function notConnected(): ZooKeeperError {
  return new ZooKeeperError('NOT_CONNECTED', 'There is no connection to ZooKeeper just now.');
}
