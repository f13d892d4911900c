import { type Call, withTimeLimit } from '@locks/core/backend';
import { type ClientPort, ZooKeeperError } from './client-port.ts';
import {
  expired,
  handshakeMs,
  notConnected,
  type SessionMember,
  ZookeeperSession,
} from './zookeeper-session.ts';

/** The source of clients: new ones as often as needed, or the one that the user passed. */
export type ZookeeperClientSource =
  | { readonly kind: 'own'; open(): ClientPort | Promise<ClientPort> }
  | { readonly kind: 'given'; readonly port: ClientPort };

/** The sessions of one backend, one after another. The first call opens the first one. */
export class ZookeeperSessions<Member extends SessionMember> {
  readonly #source: ZookeeperClientSource;
  readonly #connectTimeoutMs: number;
  #live: ZookeeperSession<Member> | undefined;
  /** The client that was used last. */
  #port: ClientPort | undefined;
  #opening: Promise<ZookeeperSession<Member>> | undefined;
  #closing: Promise<void>[] = [];
  #closed = false;
  /** The nodes that a given client may have left when its session was considered lost, with the session's id. */
  #undeleted: { readonly id: string; readonly pendingDeletes: ReadonlyMap<string, string> } | undefined;

  constructor(source: ZookeeperClientSource, connectTimeoutMs: number) {
    this.#source = source;
    this.#connectTimeoutMs = connectTimeoutMs;
  }

  get live(): ZookeeperSession<Member> | undefined {
    return this.#live;
  }

  /** The reason why there is no connection; `undefined` if there is one, or none was needed yet. */
  connectionError(): unknown {
    const port = this.#port;
    return port === undefined || isConnected(port) ? undefined : (port.connectionError ?? notConnected());
  }

  /** Returns a connected session, a new one if need be; rejects if there is no connection in time. */
  async current(call: Call): Promise<ZookeeperSession<Member>> {
    const live = this.#live;
    if (live?.connected) return live;
    if (this.#closed) throw expired();
    if (live !== undefined && !(await this.#connected(live.port))) throw notConnected();
    if (this.#live?.connected) return this.#live;
    this.#opening ??= this.#open(call).finally(() => {
      this.#opening = undefined;
    });
    return await this.#opening;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => undefined);
    this.#live?.end();
    if (this.#source.kind === 'given') await this.#source.port.close();
    await Promise.all(this.#closing);
  }

  async #open(call: Call): Promise<ZookeeperSession<Member>> {
    // The servers may hear of the session at any moment from now.
    let heardAt = call.now();
    let port: ClientPort;
    if (this.#source.kind === 'own') port = await this.#source.open();
    else {
      ({ port } = this.#source);
      if (port.state === 'ended') {
        throw new ZooKeeperError(
          'AUTH_FAILED',
          'The session of the given ZooKeeper client has ended, and such a client never comes back. ' +
            'Make a new client and a new backend, or give { servers } and let the backend do it.',
        );
      }
      // A client sends something at least every third of its session timeout.
      if (port.state === 'connected') heardAt -= port.sessionTimeoutMs / 3;
    }
    this.#port = port;
    try {
      if (!(await this.#connected(port))) throw port.refused ? refused() : notConnected();
      if (this.#closed) throw expired();
      return this.#begin(port, () => call.now(), heardAt);
    } catch (error) {
      if (this.#source.kind === 'own') this.#discard(port);
      throw error;
    }
  }

  #begin(port: ClientPort, now: () => number, heardAt: number): ZookeeperSession<Member> {
    const session = new ZookeeperSession<Member>(port, now, heardAt, () => this.#endOf(session));
    if (this.#undeleted?.id === session.id)
      for (const [acquisitionId, parent] of this.#undeleted.pendingDeletes)
        session.pendingDeletes.set(acquisitionId, parent);
    this.#undeleted = undefined;
    this.#live = session;
    return session;
  }

  #endOf(session: ZookeeperSession<Member>): void {
    if (this.#live === session) this.#live = undefined;
    if (this.#source.kind === 'own') this.#discard(session.port);
    else this.#undeleted = { id: session.id, pendingDeletes: session.pendingDeletes };
  }

  #discard(port: ClientPort): void {
    const closing = port.close().finally(() => {
      this.#closing = this.#closing.filter((other) => other !== closing);
    });
    this.#closing.push(closing);
  }

  /** Waits for a connection; `false` if there is none in time. */
  async #connected(port: ClientPort): Promise<boolean> {
    if (port.state !== 'disconnected') return isConnected(port);
    const nextServerTimer = setInterval(
      () => port.tryNextServer?.(),
      handshakeMs(port.sessionTimeoutMs),
    ).unref();
    let unlisten = (): void => {};
    const changed = new Promise<void>((resolve) => {
      unlisten = port.onChange(() => {
        if (port.state !== 'disconnected') resolve();
      });
    });
    await withTimeLimit(changed, this.#connectTimeoutMs, () => {});
    clearInterval(nextServerTimer);
    unlisten();
    return isConnected(port);
  }
}

function isConnected({ state }: ClientPort): boolean {
  return state === 'connected';
}

function refused(): ZooKeeperError {
  return new ZooKeeperError('AUTH_FAILED', 'ZooKeeper refused the session: are the credentials right?');
}
