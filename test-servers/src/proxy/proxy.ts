import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../free-port.ts';
import { type FaultScope, Faults, type LoseOptions } from './faults.ts';
import { type ConnectionContext, ProxyConnection, type ProxyRequest } from './proxy-connection.ts';

export type { Direction, FaultScope, LoseOptions } from './faults.ts';

export interface ProxyTarget {
  readonly host: string;
  readonly port: number;
}

/** A TCP proxy in this process between a client and a server, to break the network between them. */
export class Proxy implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  /** How many replies `loseReplies` has swallowed. */
  lostReplies = 0;
  readonly #faults = new Faults();
  readonly #connections = new Set<ProxyConnection>();
  readonly #context: ConnectionContext;
  #listener: Server | undefined;
  #accepted = 0;
  #counts = new Map<string, number>();
  #watchers = new Set<(request: ProxyRequest) => void>();

  constructor(target: ProxyTarget, port: number, protocol: 'redis' | 'raw') {
    this.port = port;
    this.#context = {
      target: { host: target.host, port: target.port },
      protocol,
      faults: this.#faults,
      onRequest: (request) => {
        this.#counts.set(request.command, (this.#counts.get(request.command) ?? 0) + 1);
        for (const watch of this.#watchers) watch(request);
      },
      onReplyLost: () => {
        this.lostReplies += 1;
      },
      onClose: (connection) => this.#connections.delete(connection),
    };
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /** The open connections, oldest first. */
  connections(): ProxyConnection[] {
    return [...this.#connections];
  }

  /** Everything in scope arrives `ms` later. Several latencies add up. */
  latency(ms: number, scope: FaultScope = {}): void {
    this.#faults.addLatency(ms, scope);
  }

  /** Everything in scope is accepted and swallowed for good, ends of connections too. Nobody gets an error. */
  blackhole(scope: FaultScope = {}): void {
    this.#faults.addBlackhole(scope);
  }

  /** Everything in scope is held back and arrives, in order, after `heal`: a partition that TCP outlives. */
  stall(scope: FaultScope = {}): void {
    this.#faults.addStall(scope);
  }

  /**
   * The commands run, their answers never come. From the first lost answer on its connection tells the client nothing
   * more, since later replies would be taken for the lost one; commands on it still reach the server.
   */
  loseReplies(match: (request: ProxyRequest) => boolean = () => true, options: LoseOptions = {}): void {
    this.#faults.addLoss(match, options);
  }

  /** Ends connections with RST. */
  cut(which: (connection: ProxyConnection) => boolean = () => true): void {
    for (const connection of this.connections().filter(which)) connection.cut();
  }

  /** Ends every connection with RST. */
  reset(): void {
    this.cut();
  }

  /** New connections get ECONNREFUSED; open ones go on. */
  refuse(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** New connections are welcome again. */
  async accept(): Promise<void> {
    if (this.#listener) return;
    const listener = createServer({ allowHalfOpen: true }, (client) => {
      this.#connect(client);
    });
    listener.unref();
    listener.listen(this.port, this.host);
    await once(listener, 'listening');
    this.#listener = listener;
  }

  /** Ends all faults. Connections of which something was swallowed are cut: their streams could not go on. */
  async heal(): Promise<void> {
    this.#faults.clear();
    for (const connection of this.connections()) connection.heal();
    await this.accept();
  }

  /** How many commands clients have sent, of one name or in all, since the start or `resetCounts`. */
  countRequests(command?: string): number {
    if (command !== undefined) return this.#counts.get(command.toUpperCase()) ?? 0;
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Commands sent by name, since the start or `resetCounts`. */
  requestCounts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  resetCounts(): void {
    this.#counts = new Map();
  }

  /** Calls `watch` for every command, as it arrives and before it is passed on. Gives the function that ends it. */
  onRequest(watch: (request: ProxyRequest) => void): () => void {
    this.#watchers.add(watch);
    return () => {
      this.#watchers.delete(watch);
    };
  }

  /** Cuts all connections and frees the port. May be called again. */
  async stop(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    const closed = listener && once(listener, 'close');
    listener?.close();
    this.cut();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #connect(client: Socket): void {
    this.#accepted += 1;
    this.#connections.add(new ProxyConnection(this.#accepted, client, this.#context));
  }
}

/**
 * Starts a proxy in front of `target`.
 *
 * @param options - `protocol`: `raw` passes bytes on without looking at them, so nothing is counted and no single
 *   reply can be lost. Default `redis`.
 */
export async function startProxy(
  target: ProxyTarget,
  { protocol = 'redis' }: { protocol?: 'redis' | 'raw' } = {},
): Promise<Proxy> {
  for (let tries = 1; ; tries += 1) {
    const proxy = new Proxy(target, await freePort(), protocol);
    try {
      await proxy.accept();
      return proxy;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || tries >= 10) throw error;
    }
  }
}
