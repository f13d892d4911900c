/** The part of a ZooKeeper client that this package needs. Two libraries implement it. */
export interface ClientPort {
  readonly state: ClientState;
  /** Whether the client ended because the servers refused its credentials. */
  readonly refused: boolean;
  /** Whether the application has closed the client that it had given. */
  readonly isClientClosed?: boolean;
  /** The last error of the connection, if the client is not connected and the library tells the error. */
  readonly connectionError?: unknown;
  /** The session id of the last connection, in hexadecimal. A server may silently give another one at a reconnect. */
  readonly sessionId: string;
  /** The timeout that the server granted. */
  readonly sessionTimeoutMs: number;
  /** Calls `listener` after every change of `state` or `sessionId`. Returns the function that removes the listener. */
  onChange(listener: () => void): () => void;
  /** Creates a node, and returns its path. */
  create(path: string, data: Buffer, kind: NodeKind): Promise<string>;
  /** Writes the data of a node that has this version; -1: any. */
  write(path: string, data: Buffer, version: number): Promise<NodeWritten>;
  remove(path: string): Promise<void>;
  /**
   * Creates the ephemeral node `by` and deletes the node `path`, both or neither: `NO_NODE` where that is missing, `NODE_EXISTS`
   * where `by` is there. A library without transactions has no such method.
   */
  replace?(path: string, by: string, data: Buffer): Promise<void>;
  children(path: string): Promise<ChildList>;
  /** Calls `changed` once, when the node is changed or deleted after this read. */
  read(path: string, changed: (() => void) | undefined): Promise<NodeContent>;
  /** Drops the connection, or the attempt to connect, and tries the next server with the same session. */
  tryNextServer?(): void;
  /** Whether there is another server to try. */
  readonly hasChoice: boolean;
  /** Ends the session and the connection, in any state. */
  close(): Promise<void>;
}

/** `ended` is final: the session expired or was refused. */
export type ClientState = 'connected' | 'disconnected' | 'ended';

export type NodeKind = 'persistent' | 'ephemeral' | 'ephemeral-sequential';

export interface ChildList {
  readonly names: readonly string[];
  /** The number of changes of this list of children. */
  readonly cversion: number;
  /** The transaction id of the last of those changes. */
  readonly pzxid: bigint;
}

/** A node after a write of its data. */
export interface NodeWritten {
  readonly version: number;
  /** The time of the write, on the leader's wall clock. */
  readonly writtenAt: number;
}

export interface NodeContent {
  readonly data: Buffer;
  /** The number of changes of the data. */
  readonly version: number;
  readonly czxid: bigint;
  /** The number of changes of the list of children: see {@link ChildList}. */
  readonly cversion: number;
  /** The time at which the node was created, on the server's wall clock. */
  readonly createdAt: number;
  /** The session of an ephemeral node, in the form of {@link ClientPort.sessionId}. */
  readonly owner: string;
}

/** The error that a server, or the client, answered instead of a result. */
export type ZooKeeperErrorCode =
  | 'NO_NODE'
  | 'NODE_EXISTS'
  | 'NOT_EMPTY'
  | 'BAD_VERSION'
  | 'NO_AUTH'
  | 'AUTH_FAILED'
  /** The connection ended: the request may have run or not. */
  | 'CONNECTION_LOSS'
  /** The client had no connection: nothing was sent. */
  | 'NOT_CONNECTED'
  | 'SESSION_EXPIRED'
  | 'FAILED';

/** An error of ZooKeeper from either client library: the `cause` of a `LOCK_BACKEND` error. */
export class ZooKeeperError extends Error {
  override readonly name = 'ZooKeeperError';
  /** The kind of error, the same for both clients. */
  readonly code: ZooKeeperErrorCode;

  constructor(code: ZooKeeperErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export function hasCode(error: unknown, ...codes: readonly ZooKeeperErrorCode[]): boolean {
  return error instanceof ZooKeeperError && codes.includes(error.code);
}

/** Resolves with `undefined` if the node of a request does not exist. */
export async function ifPresent<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (hasCode(error, 'NO_NODE')) return undefined;
    throw error;
  }
}

const CODES: Readonly<Record<number, ZooKeeperErrorCode>> = {
  [-4]: 'CONNECTION_LOSS',
  // The client's own time limit passed: the request may have run.
  [-7]: 'CONNECTION_LOSS',
  // The request reached the server at the end of its session.
  [-12]: 'SESSION_EXPIRED',
  [-101]: 'NO_NODE',
  [-102]: 'NO_AUTH',
  [-103]: 'BAD_VERSION',
  [-110]: 'NODE_EXISTS',
  [-111]: 'NOT_EMPTY',
  [-112]: 'SESSION_EXPIRED',
  [-115]: 'AUTH_FAILED',
  // Another server serves the session now; this connection is about to end.
  [-118]: 'CONNECTION_LOSS',
};

/** Makes an error from ZooKeeper's error number, which is the same in all clients. */
export function errorOf(number: number, doing: string, cause?: unknown): ZooKeeperError {
  const code = CODES[number] ?? 'FAILED';
  const what = cause instanceof Error ? cause.message : `error ${number}`;
  return new ZooKeeperError(code, `ZooKeeper could not ${doing}: ${what}`, cause);
}
