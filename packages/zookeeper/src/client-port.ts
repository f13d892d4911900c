/** What this package needs of a ZooKeeper client, and nothing more. Two libraries are behind it. */
export interface ClientPort {
  readonly state: ClientState;
  /** Whether it ended because the servers did not take its credentials. */
  readonly refused: boolean;
  /** In hexadecimal; of the last connection. A server may give another one at a reconnect, silently. */
  readonly sessionId: string;
  /** As the server granted it. */
  readonly sessionTimeoutMs: number;
  /** Calls `listener` after every change of `state` or `sessionId`. Gives the function that ends it. */
  onChange(listener: () => void): () => void;
  /** Gives the path that was made. */
  create(path: string, data: Buffer, kind: NodeKind): Promise<string>;
  remove(path: string): Promise<void>;
  children(path: string): Promise<Children>;
  /** `changed` is called once, when the node is changed or deleted after this was answered. */
  read(path: string, changed?: () => void): Promise<NodeContent>;
  /** Gives up the connection, or the attempt to get one, and tries the next server, with the same session. */
  moveOn?(): void;
  /** Whether there is another server to go to. */
  readonly hasChoice: boolean;
  /** Ends the session and the connection, whatever state they are in. */
  close(): Promise<void>;
}

/** `ended`: the session expired, or was refused; the client does not come back from that. */
export type ClientState = 'connected' | 'disconnected' | 'ended';

export type NodeKind = 'persistent' | 'ephemeral' | 'ephemeral-sequential';

export interface Children {
  readonly names: readonly string[];
  /** Counts the changes of this list of children. */
  readonly cversion: number;
  /** Of the last of those changes. */
  readonly pzxid: bigint;
}

export interface NodeContent {
  readonly data: Buffer;
  readonly czxid: bigint;
  /** As of {@link Children}. */
  readonly cversion: number;
  /** On the server's wall clock. */
  readonly createdAt: number;
  /** The session of an ephemeral node, as {@link ClientPort.sessionId} has it. */
  readonly owner: string;
}

export type ZooKeeperErrorCode =
  | 'NO_NODE'
  | 'NODE_EXISTS'
  | 'NOT_EMPTY'
  | 'NO_AUTH'
  | 'AUTH_FAILED'
  /** The connection ended: whether the request ran is not known. */
  | 'CONNECTION_LOSS'
  /** There was no connection: nothing was sent. */
  | 'NOT_CONNECTED'
  | 'SESSION_EXPIRED'
  | 'FAILED';

/** A failure of ZooKeeper, of either client library: the `cause` of a `LOCK_BACKEND` error. */
export class ZooKeeperError extends Error {
  override readonly name = 'ZooKeeperError';
  readonly code: ZooKeeperErrorCode;

  constructor(code: ZooKeeperErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export function hasCode(error: unknown, ...codes: readonly ZooKeeperErrorCode[]): boolean {
  return error instanceof ZooKeeperError && codes.includes(error.code);
}

const CODES: Readonly<Record<number, ZooKeeperErrorCode>> = {
  [-4]: 'CONNECTION_LOSS',
  // The client's own time limit: the request may have run.
  [-7]: 'CONNECTION_LOSS',
  // A request that met the end of its session.
  [-12]: 'SESSION_EXPIRED',
  [-101]: 'NO_NODE',
  [-102]: 'NO_AUTH',
  [-110]: 'NODE_EXISTS',
  [-111]: 'NOT_EMPTY',
  [-112]: 'SESSION_EXPIRED',
  [-115]: 'AUTH_FAILED',
  // The session is served by another server now; this connection is about to end.
  [-118]: 'CONNECTION_LOSS',
};

/** ZooKeeper's numbers are the same in all clients. */
export function errorOf(number: number, doing: string, cause?: unknown): ZooKeeperError {
  const code = CODES[number] ?? 'FAILED';
  const what = cause instanceof Error ? cause.message : `error ${number}`;
  return new ZooKeeperError(code, `ZooKeeper could not ${doing}: ${what}`, cause);
}
