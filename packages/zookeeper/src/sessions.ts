import type { Call } from '@locks/core';
import { type ClientPort, ZooKeeperError } from './client-port.ts';
import { expired, handshakeMs, notConnected, Session } from './session.ts';

/** Where clients come from: new ones as often as needed, or the one that the user has. */
export type ClientSource =
  | { readonly kind: 'own'; open(): ClientPort }
  | { readonly kind: 'given'; readonly port: ClientPort };

/** The sessions of one backend, one after another. Nothing is opened before the first call. */
export class Sessions {
  readonly #source: ClientSource;
  readonly #connectTimeoutMs: number;
  #live: Session | undefined;
  #opening: Promise<Session> | undefined;
  #closing: Promise<void>[] = [];
  #closed = false;
  /** What a given client may have left when it was taken for lost: by its session's id. */
  #leftovers: { readonly id: string; readonly graves: ReadonlyMap<string, string> } | undefined;

  constructor(source: ClientSource, connectTimeoutMs: number) {
    this.#source = source;
    this.#connectTimeoutMs = connectTimeoutMs;
  }

  get live(): Session | undefined {
    return this.#live;
  }

  /** A session with a connection, new if need be; rejects when there is none for a while. */
  async current(call: Call): Promise<Session> {
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

  async #open(call: Call): Promise<Session> {
    // The servers may hear of the session at any moment from now.
    let heardAt = call.now();
    let port: ClientPort;
    if (this.#source.kind === 'own') port = this.#source.open();
    else {
      ({ port } = this.#source);
      if (port.state === 'ended') {
        throw new ZooKeeperError(
          'AUTH_FAILED',
          'The session of the given ZooKeeper client has ended, and such a client never comes back. ' +
            'Make a new client and a new backend, or give { servers } and let the backend do it.',
        );
      }
      // A client speaks at least every third of its session's time.
      if (port.state === 'connected') heardAt -= port.sessionTimeoutMs / 3;
    }
    try {
      if (!(await this.#connected(port))) throw port.refused ? refused() : notConnected();
      if (this.#closed) throw expired();
      return this.#begin(port, () => call.now(), heardAt);
    } catch (error) {
      if (this.#source.kind === 'own') this.#discard(port);
      throw error;
    }
  }

  #begin(port: ClientPort, now: () => number, heardAt: number): Session {
    const session = new Session(port, now, heardAt, (ended) => this.#endOf(ended));
    if (this.#leftovers?.id === session.id)
      for (const [acquisitionId, parent] of this.#leftovers.graves) session.graves.set(acquisitionId, parent);
    this.#leftovers = undefined;
    this.#live = session;
    return session;
  }

  #endOf(session: Session): void {
    if (this.#live === session) this.#live = undefined;
    if (this.#source.kind === 'own') this.#discard(session.port);
    else this.#leftovers = { id: session.id, graves: session.graves };
  }

  #discard(port: ClientPort): void {
    const closing = port.close().finally(() => {
      this.#closing = this.#closing.filter((other) => other !== closing);
    });
    this.#closing.push(closing);
  }

  /** Whether there is a connection within the time that is left. */
  async #connected(port: ClientPort): Promise<boolean> {
    if (port.state === 'connected') return true;
    if (port.state === 'ended') return false;
    const mover = setInterval(() => port.moveOn?.(), handshakeMs(port.sessionTimeoutMs)).unref();
    try {
      return await new Promise<boolean>((resolve) => {
        const settle = (): void => {
          clearTimeout(timer);
          unlisten();
          resolve(port.state === 'connected');
        };
        const timer = setTimeout(settle, this.#connectTimeoutMs).unref();
        const unlisten = port.onChange(() => {
          if (port.state !== 'disconnected') settle();
        });
      });
    } finally {
      clearInterval(mover);
    }
  }
}

function refused(): ZooKeeperError {
  return new ZooKeeperError('AUTH_FAILED', 'ZooKeeper refused the session: are the credentials right?');
}
