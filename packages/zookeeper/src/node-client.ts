import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { shareListener } from '@locks/core/backend';
import {
  type ChildList,
  type ClientPort,
  type ClientState,
  errorOf,
  type NodeContent,
  type NodeKind,
  type NodeWritten,
} from './client-port.ts';
import { managerOf } from './harden-client.ts';
import type { NodeClientError, NodeStat, NodeZooKeeperClient } from './node-client-types.ts';

const MODES: Readonly<Record<NodeKind, number>> = { persistent: 0, ephemeral: 1, 'ephemeral-sequential': 3 };
const CONNECTION_LOSS = -4;
/** The states `CLOSING` and `CLOSED` of the library. */
const CLOSED: ReadonlySet<unknown> = new Set([-1, -2]);
/** The time limit for the server to confirm the end of a session, before the connection is destroyed. */
const CLOSE_MS = 500;
/** The time after a close during which a connection that was still being made is destroyed. */
const LINGER_MS = 2_000;

/** Implements the port with `node-zookeeper-client`. */
export class NodeClientPort implements ClientPort {
  readonly #client: NodeZooKeeperClient;
  readonly #acl: readonly unknown[] | undefined;
  readonly #own: boolean;
  readonly hasChoice: boolean;
  readonly #listeners = new Set<() => void>();
  /** Each ends a listener of the client. */
  readonly #listening: readonly (() => void)[];
  readonly #outstanding = new Set<(error: Error) => void>();
  // The library reports EXPIRED and then DISCONNECTED: an ended session stays ended.
  #ended = false;
  #refused = false;
  #connectionError: Error | undefined;

  /** Wraps a client; `own`: the backend opened it, and may destroy its connection. */
  constructor(client: NodeZooKeeperClient, own: boolean, hasChoice: boolean, acl?: readonly unknown[]) {
    this.#client = client;
    this.#own = own;
    this.hasChoice = hasChoice;
    this.#acl = acl;
    this.#listening = [
      shareListener(client, 'expired', this.#endedByServer),
      shareListener(client, 'authenticationFailed', this.#refusedByServer),
      shareListener(client, 'state', this.#notify),
    ];
    this.#listenToSocketErrors();
  }

  get state(): ClientState {
    if (this.#ended) return 'ended';
    return this.#client.getState().name === 'SYNC_CONNECTED' ? 'connected' : 'disconnected';
  }

  get isClientClosed(): boolean {
    // The library also closes a client whose session has expired.
    return !this.#own && !this.#ended && CLOSED.has(managerOf(this.#client)?.state);
  }

  get refused(): boolean {
    return this.#refused;
  }

  get connectionError(): unknown {
    return this.#connectionError;
  }

  get sessionId(): string {
    return this.#client.getSessionId().toString('hex');
  }

  get sessionTimeoutMs(): number {
    return this.#client.getSessionTimeout();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  create(path: string, data: Buffer, kind: NodeKind): Promise<string> {
    const mode = MODES[kind];
    return this.#call(`create ${path}`, (done: Done<string>) => {
      if (this.#acl === undefined) this.#client.create(path, data, mode, done);
      else this.#client.create(path, data, this.#acl, mode, done);
    });
  }

  write(path: string, data: Buffer, version: number): Promise<NodeWritten> {
    return this.#call(`write ${path}`, (done: Done<NodeWritten>) => {
      this.#client.setData(path, data, version, (error, stat) => {
        if (error) done(error);
        else done(undefined, { version: stat.version, writtenAt: Number(stat.mtime.readBigInt64BE()) });
      });
    });
  }

  remove(path: string): Promise<void> {
    return this.#call(`delete ${path}`, (done: Done<void>) => this.#client.remove(path, done));
  }

  replace(path: string, by: string, data: Buffer): Promise<void> {
    return this.#call(`replace ${path}`, (done: Done<void>) => {
      this.#client
        .transaction()
        .create(by, data, this.#acl, MODES.ephemeral)
        .remove(path)
        .commit((error) => done(error));
    });
  }

  children(path: string): Promise<ChildList> {
    return this.#call(`list the children of ${path}`, (done: Done<ChildList>) => {
      this.#client.getChildren(path, (error, names, stat) => {
        if (error) done(error);
        else done(undefined, { names, cversion: stat.cversion, pzxid: stat.pzxid.readBigInt64BE() });
      });
    });
  }

  read(path: string, changed: (() => void) | undefined): Promise<NodeContent> {
    return this.#call(`read ${path}`, (done: Done<NodeContent>) => {
      const answer = (error: Failure, data: Buffer | undefined, stat: NodeStat): void => {
        if (error) done(error);
        else done(undefined, contentOf(data, stat));
      };
      if (changed === undefined) this.#client.getData(path, answer);
      else this.#client.getData(path, changed, answer);
    });
  }

  /** Destroys the connection: the library waits forever for a server that accepts a connection and says nothing. */
  tryNextServer(): void {
    if (this.#own) this.#socket()?.destroy();
  }

  async close(): Promise<void> {
    this.#unlisten();
    if (!this.#own) return;
    const { state } = this;
    // The library makes its first socket in the next tick, and throws if it is closed before.
    for (let tries = 0; this.#socket() === undefined && tries < 100; tries += 1) await delay(1);
    this.#client.close();
    const socket = this.#socket();
    if (state === 'connected' && socket !== undefined && !socket.destroyed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, CLOSE_MS);
        socket.once('close', () => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    this.#socket()?.destroy();
    // A connection may still be in the making, and would keep the process alive.
    const reaper = setInterval(() => this.#socket()?.destroy(), 50).unref();
    setTimeout(() => clearInterval(reaper), LINGER_MS).unref();
  }

  readonly #endedByServer = (): void => {
    this.#ended = true;
    this.#notify();
  };

  readonly #refusedByServer = (): void => {
    this.#refused = true;
    this.#endedByServer();
  };

  readonly #notify = (): void => {
    if (this.state === 'connected') this.#connectionError = undefined;
    // The library has called back the requests that it knows; it has forgotten the others.
    if (this.state !== 'connected') {
      for (const reject of this.#outstanding) reject(errorOf(CONNECTION_LOSS, 'get an answer'));
      this.#outstanding.clear();
    }
    for (const listener of [...this.#listeners]) listener();
  };

  #unlisten(): void {
    this.#listeners.clear();
    for (const end of this.#listening) end();
  }

  /** Listens to the errors of sockets, which the library keeps to itself: it binds the wrapped method to each socket. */
  #listenToSocketErrors(): void {
    const manager = managerOf(this.#client);
    const onSocketError = manager?.onSocketError;
    if (manager === undefined || onSocketError === undefined) return;
    manager.onSocketError = (error) => {
      this.#connectionError = error;
      onSocketError.call(manager, error);
    };
  }

  /** The socket of the connection: the library has no other way to end a silent one. */
  #socket(): Socket | undefined {
    return managerOf(this.#client)?.socket;
  }

  #call<T>(doing: string, send: (done: Done<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#outstanding.add(reject);
      send((error, value) => {
        this.#outstanding.delete(reject);
        if (error) reject(errorOf(error.code ?? 0, doing, error));
        else resolve(value as T);
      });
    });
  }
}

type Failure = NodeClientError | null | undefined;
type Done<T> = (error?: Failure, value?: T) => void;

function contentOf(
  data: Buffer | undefined,
  { version, czxid, cversion, ctime, ephemeralOwner }: NodeStat,
): NodeContent {
  return {
    data: data ?? Buffer.alloc(0),
    version,
    czxid: czxid.readBigInt64BE(),
    cversion,
    createdAt: Number(ctime.readBigInt64BE()),
    owner: ephemeralOwner.toString('hex'),
  };
}
