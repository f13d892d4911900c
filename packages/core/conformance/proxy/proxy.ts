import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { checkScope, NetworkFaults, type FaultScope, type ReplyLength } from './network-faults.ts';
import { type Address, type ConnectionContext, ProxyConnection } from './proxy-connection.ts';

/** A TCP proxy in this process that breaks the network between a client and a server, and knows no protocol. */
export class Proxy<C extends ProxyConnection = ProxyConnection> implements AsyncDisposable {
  /** The address on which the proxy listens. */
  readonly host = '127.0.0.1';
  /** What the connections of the proxy share. */
  protected readonly context: ConnectionContext<C>;
  readonly #faults = new NetworkFaults<C>();
  readonly #connections = new Set<C>();
  readonly #connect: (id: number, client: Socket, context: ConnectionContext<C>) => C;
  #port: number;
  #listener: Server | undefined;
  #accepted = 0;

  constructor(
    target: Address,
    port: number,
    makeConnection: (id: number, client: Socket, context: ConnectionContext<C>) => C,
  ) {
    this.#port = port;
    this.#connect = makeConnection;
    this.context = {
      target: { host: target.host, port: target.port },
      faults: this.#faults,
      onClose: (connection) => this.#connections.delete(connection),
    };
  }

  /** The port on which the proxy listens. */
  get port(): number {
    return this.#port;
  }

  /** The open connections, oldest first. */
  connections(): C[] {
    return [...this.#connections];
  }

  /**
   * Delays data in scope by `ms` milliseconds. Several latencies add up.
   * @throws LockError `LOCK_INVALID_ARGUMENT` for a misspelt scope
   */
  latency(ms: number, scope: FaultScope<C> = {}): void {
    checkScope('latency()', scope);
    this.#faults.addLatency(ms, scope);
  }

  /**
   * Accepts and drops data in scope, and ends of connections too. Nobody gets an error.
   * @throws LockError `LOCK_INVALID_ARGUMENT` for a misspelt scope
   */
  blackhole(scope: FaultScope<C> = {}): void {
    checkScope('blackhole()', scope);
    this.#faults.addBlackhole(scope);
  }

  /**
   * Holds back data in scope, which arrives in order after `heal`: a partition that TCP survives.
   * @throws LockError `LOCK_INVALID_ARGUMENT` for a misspelt scope
   */
  stall(scope: FaultScope<C> = {}): void {
    checkScope('stall()', scope);
    this.#faults.addStall(scope);
  }

  /** Cuts each open connection with RST when its next reply comes: the command ran, and its client cannot know. */
  cutAtNextReply(): void {
    this.#faults.endAtNextReply(this.connections());
  }

  /**
   * Makes every reply arrive twice. Only for a protocol whose replies name their request. To be called before clients
   * connect, since replies are parsed from the first byte.
   */
  repeatReplies(replyLength: ReplyLength): void {
    this.#faults.repeats = replyLength;
  }

  /** Ends connections with RST. */
  cut(which: (connection: C) => boolean = () => true): void {
    for (const connection of this.connections().filter(which)) connection.cut();
  }

  /** Refuses new connections with ECONNREFUSED; open ones go on. */
  refuse(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** Accepts new connections again. */
  async accept(): Promise<void> {
    if (this.#listener) return;
    const listener = createServer({ allowHalfOpen: true }, (client) => {
      this.#accepted += 1;
      this.#connections.add(this.#connect(this.#accepted, client, this.context));
    });
    listener.unref();
    listener.listen(this.#port, this.host);
    await once(listener, 'listening');
    const address = listener.address();
    if (typeof address === 'object' && address !== null) this.#port = address.port;
    this.#listener = listener;
  }

  /** Ends all faults, and cuts connections that lost data. */
  async heal(): Promise<void> {
    this.#faults.clear();
    for (const connection of this.connections()) connection.heal();
    await this.accept();
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

  /** Stops listening, and cuts all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/**
 * Starts a proxy on a port of 127.0.0.1, in front of the server at `target`.
 *
 * @example
 * ```ts
 * import { startProxy } from '@locks/core/conformance/proxy';
 *
 * const proxy = await startProxy({ host: '127.0.0.1', port: 6379 });
 * proxy.latency(200, { direction: 'toClient' });
 * await proxy.stop();
 * ```
 */
export async function startProxy(target: Address): Promise<Proxy> {
  const proxy = new Proxy(target, 0, (id, client, context) => new ProxyConnection(id, client, context));
  await proxy.accept();
  return proxy;
}
