import { shareListener } from '@locks/core/backend';
import {
  type ChildList,
  type ClientPort,
  type ClientState,
  errorOf,
  type NodeContent,
  type NodeKind,
  type NodeWritten,
  ZooKeeperError,
} from './client-port.ts';
import type { NativeStat, NativeZooKeeperClient } from './native-client-types.ts';

const FLAGS: Readonly<Record<NodeKind, number>> = { persistent: 0, ephemeral: 1, 'ephemeral-sequential': 3 };
const CONNECTED = 3;
/** The code with which the client closes itself. */
const AUTH_FAILED_STATE = -113;
/** The event type by which a watcher also hears that the connection changed. */
const SESSION_EVENT = -1;
/** The return code for a handle that is closed or was never opened. */
const INVALID_STATE = -9;

/** Implements the port with the native package `zookeeper`, whose C client leaves silent servers by itself. */
export class NativeClientPort implements ClientPort {
  /** The C client changes servers by itself. */
  readonly hasChoice = false;
  readonly #client: NativeZooKeeperClient;
  readonly #own: boolean;
  readonly #listeners = new Set<() => void>();
  /** Each ends a listener of the client. */
  readonly #listening: readonly (() => void)[];
  readonly #endOfClose: () => void;
  #state: ClientState;
  #refused = false;

  /** Wraps a client; `own`: the backend opened it, and may close it. */
  constructor(client: NativeZooKeeperClient, own: boolean) {
    this.#client = client;
    this.#own = own;
    this.#state = client.state === CONNECTED ? 'connected' : 'disconnected';
    this.#listening = [
      shareListener(client, 'connect', this.#connected),
      shareListener(client, 'connecting', this.#connecting),
    ];
    this.#endOfClose = shareListener(client, 'close', this.#closed);
  }

  get state(): ClientState {
    return this.#state;
  }

  get refused(): boolean {
    return this.#refused;
  }

  get sessionId(): string {
    return String(this.#client.client_id);
  }

  get sessionTimeoutMs(): number {
    return this.#client.timeout;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  create(path: string, data: Buffer, kind: NodeKind): Promise<string> {
    return this.#call(`create ${path}`, (done: Done<string>) =>
      this.#client.a_create(path, data, FLAGS[kind], (rc, error, made) => done(rc, error, () => made)),
    );
  }

  write(path: string, data: Buffer, version: number): Promise<NodeWritten> {
    return this.#call(`write ${path}`, (done: Done<NodeWritten>) =>
      this.#client.a_set(path, data, version, (rc, error, stat) =>
        done(rc, error, () => ({ version: stat.version, writtenAt: Number(stat.mtime) })),
      ),
    );
  }

  remove(path: string): Promise<void> {
    return this.#call(`delete ${path}`, (done: Done<void>) =>
      this.#client.a_delete_(path, -1, (rc, error) => done(rc, error, () => undefined)),
    );
  }

  children(path: string): Promise<ChildList> {
    return this.#call(`list the children of ${path}`, (done: Done<ChildList>) =>
      this.#client.a_get_children2(path, false, (rc, error, names, stat) =>
        done(rc, error, () => ({ names, cversion: stat.cversion, pzxid: exactly(stat.pzxid) })),
      ),
    );
  }

  read(path: string, changed: (() => void) | undefined): Promise<NodeContent> {
    return this.#call(`read ${path}`, (done: Done<NodeContent>) => {
      const answer = (
        rc: number,
        error: unknown,
        stat: NativeStat | null,
        data: Buffer | string | null,
      ): void => done(rc, error, () => contentOf(data, stat as NativeStat));
      if (changed === undefined) return this.#client.a_get(path, false, answer);
      const watcher = (type: number): void => {
        if (type !== SESSION_EVENT) changed();
      };
      return this.#client.aw_get(path, watcher, answer);
    });
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    for (const end of this.#listening) end();
    if (!this.#own) return this.#endOfClose();
    // The client is never closed inside a callback of the C client, which would free the memory that it returns to.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#state !== 'ended') this.#client.close();
  }

  readonly #connected = (): void => this.#become('connected');
  readonly #connecting = (): void => this.#become('disconnected');
  readonly #closed = (_: unknown, code?: number): void => {
    this.#refused = code === AUTH_FAILED_STATE;
    this.#become('ended');
  };

  #become(state: ClientState): void {
    if (this.#state !== 'ended') this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }

  #call<T>(doing: string, send: (done: Done<T>) => number): Promise<T> {
    return new Promise((resolve, reject) => {
      const refused = send((rc, error, value) => {
        if (rc !== 0) return reject(errorOf(rc, doing, new Error(String(error))));
        try {
          resolve(value());
        } catch (caught) {
          reject(caught);
        }
      });
      if (refused === INVALID_STATE)
        reject(new ZooKeeperError('SESSION_EXPIRED', `${doing}: the client is closed`));
      else if (refused !== 0) reject(errorOf(refused, doing));
    });
  }
}

/** The callback of a request; `value` is called only after a success. */
type Done<T> = (rc: number, error: unknown, value: () => T) => void;

function contentOf(
  data: Buffer | string | null,
  { version, czxid, cversion, ctime, ephemeralOwner }: NativeStat,
): NodeContent {
  return {
    data: Buffer.from(data ?? ''),
    version,
    czxid: exactly(czxid),
    cversion,
    createdAt: Number(ctime),
    owner: ephemeralOwner,
  };
}

/** Converts a transaction id, which the package gives as a number: rounded, two tokens could be equal. */
function exactly(zxid: number): bigint {
  if (Number.isSafeInteger(zxid)) return BigInt(zxid);
  throw new ZooKeeperError(
    'FAILED',
    `The transaction id ${zxid} is too large for the native client to represent exactly.`,
  );
}
