import { type ClientPort, hasCode, ZooKeeperError } from './client-port.ts';
import { Lifespan } from './lifespan.ts';
import { Line } from './line.ts';
import type { Place } from './place.ts';
import { Watches } from './watches.ts';

/** A node that never exists: to delete it is a write that changes nothing, and that only a leader with a quorum answers. */
const PROBE = '/locks-backend-probe';
/** A server that said nothing for this part of the session's time after a probe: the client had better try another. */
const SUSPICIOUS = 1 / 6;

/** One session with ZooKeeper, from its first use to its end, and all that is held or waited for in it. */
export class Session {
  readonly id: string;
  readonly timeoutMs: number;
  readonly port: ClientPort;
  readonly now: () => number;
  readonly watches: Watches;
  /** What is in line, by acquisition id. */
  readonly places = new Map<string, Place>();
  /** What could not be deleted yet: the line's path by acquisition id. */
  readonly graves = new Map<string, string>();
  /** For grants. */
  readonly tenure = { validUntil: (): number => this.#lifespan.validUntil };
  readonly #lifespan: Lifespan;
  readonly #pending = new Set<(error: ZooKeeperError) => void>();
  readonly #onEnd: (session: Session) => void;
  readonly #unlisten: () => void;
  #ended = false;
  #connected = true;
  #proven = false;
  /** When a server answered anything last. */
  #heardAt = Number.NEGATIVE_INFINITY;
  #heart: NodeJS.Timeout | undefined;
  #watchdog: NodeJS.Timeout | undefined;
  #mover: NodeJS.Timeout | undefined;

  /** `heardAt`: before which moment the servers cannot have heard of the session last. */
  constructor(port: ClientPort, now: () => number, heardAt: number, onEnd: (session: Session) => void) {
    this.port = port;
    this.id = port.sessionId;
    this.timeoutMs = port.sessionTimeoutMs;
    this.now = now;
    this.#lifespan = new Lifespan(this.timeoutMs, heardAt);
    this.#onEnd = onEnd;
    this.watches = new Watches((path, changed) => this.ask(() => port.read(path, changed)));
    this.#unlisten = port.onChange(() => this.#changed());
    this.#watch(heardAt + this.timeoutMs);
    this.#beat();
  }

  get ended(): boolean {
    return this.#ended;
  }

  get connected(): boolean {
    return !this.#ended && this.port.state === 'connected';
  }

  /** One request, sent at once or not at all, and given up when the session ends. */
  ask<T>(send: () => Promise<T>): Promise<T> {
    if (this.#ended) return Promise.reject(expired());
    // Clients would keep the request and send it after the reconnect, when nobody wants it any more.
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

  /** A write that was sent at `sentAt` was answered: the session lived then. */
  proven(sentAt: number): void {
    // ClickHouse Keeper gives a new session at a reconnect without a word.
    if (this.port.sessionId !== this.id) return this.end();
    // Its leases may have been told as lost: what was not proven in time does not come back to life.
    if (this.#proven && this.now() >= this.#lifespan.validUntil) return this.end();
    if (this.#ended) return;
    this.#proven = true;
    this.#lifespan.proven(sentAt);
  }

  /** After this everything is read at least as new as now, whichever server answers. */
  async barrier(): Promise<void> {
    const sentAt = this.now();
    try {
      await this.ask(() => this.port.remove(PROBE));
    } catch (error) {
      if (!hasCode(error, 'NO_NODE', 'NO_AUTH')) throw error;
    }
    this.proven(sentAt);
  }

  /** Those in line at `parent`. */
  async line(parent: string): Promise<Line> {
    try {
      const { names } = await this.ask(() => this.port.children(parent));
      return new Line(names);
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return new Line([]);
      throw error;
    }
  }

  /** Deletes whatever nodes an acquisition has, known or not; goes on in the background when it cannot. */
  async bury(acquisitionId: string, parent: string): Promise<boolean> {
    this.graves.set(acquisitionId, parent);
    // One that is made meanwhile is not meant.
    const place = this.places.get(acquisitionId);
    const [, line] = await Promise.all([this.barrier(), this.line(parent)]);
    const removed = await Promise.all(
      line.of(acquisitionId).map(({ name }) => this.remove(`${parent}/${name}`)),
    );
    this.graves.delete(acquisitionId);
    place?.gone();
    return removed.includes(true);
  }

  /** `false`: there was no such node. */
  async remove(path: string): Promise<boolean> {
    const sentAt = this.now();
    try {
      await this.ask(() => this.port.remove(path));
    } catch (error) {
      if (!hasCode(error, 'NO_NODE')) throw error;
      this.proven(sentAt);
      return false;
    }
    this.proven(sentAt);
    return true;
  }

  /** All is lost at once (docs/spec.md §12.1). */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#lifespan.end();
    clearTimeout(this.#heart);
    clearTimeout(this.#watchdog);
    clearInterval(this.#mover);
    this.#unlisten();
    // Where the client lives on, in the same session, the nodes do too.
    for (const [acquisitionId, { parent }] of this.places) this.graves.set(acquisitionId, parent);
    for (const place of [...this.places.values()]) place.lose('session-lost');
    for (const reject of this.#pending) reject(expired());
    this.#pending.clear();
    this.watches.end();
    this.#onEnd(this);
  }

  #changed(): void {
    if (this.port.state === 'ended') return this.end();
    const { connected } = this;
    if (connected && this.port.sessionId !== this.id) return this.end();
    const again = connected && !this.#connected;
    this.#connected = connected;
    clearInterval(this.#mover);
    // A server that takes the connection and says nothing would be waited for until the session is over.
    if (!connected)
      this.#mover = setInterval(() => this.port.moveOn?.(), handshakeMs(this.timeoutMs)).unref();
    if (!again) return;
    this.#beat();
    void this.watches.verify();
  }

  /** Every third of the session's time, and after a reconnect: one small write for all leases. */
  #beat(): void {
    clearTimeout(this.#heart);
    this.#heart = setTimeout(() => this.#beat(), this.timeoutMs / 3).unref();
    if (this.connected) void this.#probe();
  }

  async #probe(): Promise<void> {
    const sentAt = this.now();
    const moveOn = (): void => {
      // One that is only slow still answers what it was asked before.
      if (this.#heardAt < sentAt && this.connected && this.port.hasChoice) this.port.moveOn?.();
    };
    // After a pause of this process the answer may be here, and read only after the timers.
    const silent = setTimeout(() => setImmediate(moveOn), this.timeoutMs * SUSPICIOUS).unref();
    try {
      await this.barrier();
      for (const [acquisitionId, parent] of [...this.graves]) {
        // Buried meanwhile, and perhaps in line again.
        const place = this.places.get(acquisitionId);
        if (this.graves.has(acquisitionId) && (place === undefined || place.doomed))
          await this.bury(acquisitionId, parent);
      }
    } catch {
      // The next one may be answered; if not, the watchdog tells.
    } finally {
      clearTimeout(silent);
    }
  }

  /** Tells the loss by time, whatever the network does. */
  #watch(until: number): void {
    this.#watchdog = setTimeout(
      () => {
        const { validUntil } = this.#lifespan;
        if (this.now() < Math.max(until, validUntil)) this.#watch(Math.max(until, validUntil));
        else this.end();
      },
      Math.max(1, Math.ceil(until - this.now())),
    ).unref();
  }
}

/** How long a server may take to welcome a client. */
export function handshakeMs(sessionTimeoutMs: number): number {
  return Math.max(1_000, sessionTimeoutMs * SUSPICIOUS);
}

export function expired(): ZooKeeperError {
  return new ZooKeeperError('SESSION_EXPIRED', 'The session with ZooKeeper has ended.');
}

export function notConnected(): ZooKeeperError {
  return new ZooKeeperError('NOT_CONNECTED', 'There is no connection to ZooKeeper just now.');
}
