type Callback<A extends readonly unknown[]> = (
  error: NodeClientError | null | undefined,
  ...answer: A
) => void;

/** An error of the client library; `code` is the number that ZooKeeper gives it. */
export interface NodeClientError extends Error {
  readonly code?: number;
}

/** The state of a node as the client library tells it: numbers of 64 bits, the highest byte first. */
export interface NodeStat {
  readonly czxid: Buffer;
  readonly pzxid: Buffer;
  readonly ctime: Buffer;
  readonly mtime: Buffer;
  readonly version: number;
  readonly cversion: number;
  readonly ephemeralOwner: Buffer;
}

/** Requests that the server carries out as one, or not at all. */
export interface NodeTransaction {
  /** Adds the creation of a node; without `acls`, which is an array, it is open to everybody. */
  create(path: string, data: Buffer, acls: unknown, mode: number): this;
  /** Adds the deletion of a node. */
  remove(path: string): this;
  /** Sends the requests; the error is that of the first one that the server refuses. */
  commit(callback: Callback<[]>): void;
}

/** The part of a client of the library `node-zookeeper-client` that this package uses. */
export interface NodeZooKeeperClient {
  connect(): void;
  close(): void;
  getState(): { readonly name: string };
  getSessionId(): Buffer;
  getSessionTimeout(): number;
  on(event: 'state' | 'expired' | 'authenticationFailed', listener: () => void): unknown;
  removeListener(event: 'state' | 'expired' | 'authenticationFailed', listener: () => void): unknown;
  create(
    path: string,
    data: Buffer,
    acls: readonly unknown[],
    mode: number,
    callback: Callback<[string]>,
  ): void;
  create(path: string, data: Buffer, mode: number, callback: Callback<[string]>): void;
  setData(path: string, data: Buffer, version: number, callback: Callback<[NodeStat]>): void;
  remove(path: string, callback: Callback<[]>): void;
  transaction(): NodeTransaction;
  getChildren(path: string, callback: Callback<[readonly string[], NodeStat]>): void;
  getData(path: string, callback: Callback<[Buffer | undefined, NodeStat]>): void;
  getData(path: string, watcher: () => void, callback: Callback<[Buffer | undefined, NodeStat]>): void;
  /** Adds credentials. */
  addAuthInfo(scheme: string, auth: Buffer): void;
}
