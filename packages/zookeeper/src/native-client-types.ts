/** The state of a node as the client library tells it. */
export interface NativeStat {
  /** A transaction id as a JavaScript number, which is exact up to 2⁵³. */
  readonly czxid: number;
  readonly pzxid: number;
  readonly cversion: number;
  readonly ctime: Date | number;
  readonly mtime: Date | number;
  readonly version: number;
  readonly ephemeralOwner: string;
}

/** The part of a client of the package `zookeeper` that this package uses. */
export interface NativeZooKeeperClient {
  /** The state of the client; 3 means connected. */
  readonly state: number;
  /** The session id in hexadecimal; the package's own types say that it is a number. */
  readonly client_id: unknown;
  readonly timeout: number;
  init(config: Readonly<Record<string, unknown>>): unknown;
  close(): unknown;
  on(event: 'connect' | 'connecting' | 'close', listener: NativeListener): unknown;
  removeListener(event: 'connect' | 'connecting' | 'close', listener: NativeListener): unknown;
  a_create(
    path: string,
    data: Buffer,
    flags: number,
    done: (rc: number, error: unknown, path: string) => void,
  ): number;
  a_set(
    path: string,
    data: Buffer,
    version: number,
    done: (rc: number, error: unknown, stat: NativeStat) => void,
  ): number;
  a_delete_(path: string, version: number, done: (rc: number, error: unknown) => void): number;
  a_get_children2(
    path: string,
    watch: boolean,
    done: (rc: number, error: unknown, children: readonly string[], stat: NativeStat) => void,
  ): number;
  a_get(path: string, watch: boolean, done: NativeDataCallback): number;
  aw_get(path: string, watcher: (type: number) => void, done: NativeDataCallback): number;
  /** Adds credentials. */
  add_auth(scheme: string, auth: string, done: (rc: number) => void): unknown;
}

/** A listener; `code` says why a client closed itself. */
export type NativeListener = (client: unknown, code?: number) => void;

/** Gets the data of a node, or the number of an error as `rc`. */
export type NativeDataCallback = (
  rc: number,
  error: unknown,
  stat: NativeStat | null,
  data: Buffer | string | null,
) => void;

/** The class that the package `zookeeper` exports. */
export type NativeLibrary = new (config: Readonly<Record<string, unknown>>) => NativeZooKeeperClient;
