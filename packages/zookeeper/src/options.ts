import {
  invalidArgument,
  matching,
  MAX_TIMEOUT_MS,
  milliseconds,
  optional,
  type OptionReader,
  type OptionTable,
  readClient,
  text,
} from '@locks/core/backend';

/** The options that apply with servers and with a client of yours. */
export interface CommonOptions {
  /**
   * The node that all locks are under, of which no part begins with a colon; the backend creates it if it is missing. Locks with
   * different paths have nothing in common.
   * @defaultValue '/locks'
   */
  readonly path?: string;
  /**
   * The time that the node of an unused resource stays, in milliseconds.
   * @defaultValue 5 000
   */
  readonly idleTtlMs?: number;
  /**
   * The longest wait of a call for a connection before it fails, in milliseconds. Core repeats the call until `waitMs`.
   * @defaultValue 5 000
   */
  readonly connectTimeoutMs?: number;
}

/** The options of a client that the backend makes itself. */
export interface ServerOptions<Client> {
  /**
   * The time that the servers keep a session whose client is silent, in milliseconds: the delay that the death of a holder
   * causes. The servers have bounds of their own, usually 4 to 40 seconds.
   * @defaultValue 10 000
   */
  readonly sessionTimeoutMs?: number;
  /** Called with each client that the backend opens, before it connects, for example to add credentials. */
  readonly setUpClient?: (client: Client) => void;
}

export const DEFAULT_SESSION_MS = 10_000;

export interface CheckedZookeeperOptions {
  readonly path: string;
  readonly idleTtlMs: number;
  readonly connectTimeoutMs: number;
}

export const COMMON_TABLE = {
  path: optional(
    text(
      'a path of a node, like "/locks", not "/", and without a node that begins with ":"',
      /^(?!.*\/\.{1,2}(\/|$))(\/[^/:\0][^/\0]*)+$/s,
    ),
    '/locks',
  ),
  idleTtlMs: optional(wholeMilliseconds(10), 5_000),
  connectTimeoutMs: optional(wholeMilliseconds(1), 5_000),
} satisfies OptionTable<CommonOptions>;

/** The options of the clients that the backend opens: none of them can be combined with a client. */
export const SERVER_TABLE = {
  sessionTimeoutMs: optional(wholeMilliseconds(100)),
  setUpClient: optional(matching('a function', (value) => typeof value === 'function')),
} satisfies OptionTable<ServerOptions<never>>;

const readServers = text('a connect string, like "zk1:2181,zk2:2181,zk3:2181"', /^[^\s/@]+(\/[^\s@]*)?$/);

/** For options that belong to the first argument. */
export const ELSEWHERE = { servers: 'the first argument', client: 'the first argument' };

/**
 * Checks the first argument of a function: a client, or the connect string of the servers, `host:port,host:port,…`, followed by a path
 * for a chroot.
 *
 * @param own - the options of clients that the backend opens, as they were given
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function readClientOrServers<Client>(
  caller: string,
  given: unknown,
  allowed: string,
  isClient: (value: unknown) => value is Client,
  own: Readonly<Record<string, unknown>>,
): { readonly client: Client } | { readonly servers: string } {
  if (typeof given === 'string') return { servers: readServers(given, `${caller}: the first argument`) };
  const client = readClient(caller, 'client', given, `${allowed}, or a connect string of servers`, isClient);
  const [name] = Object.keys(own).filter((each) => own[each] !== undefined);
  if (name === undefined) return { client };
  throw invalidArgument(`${caller}: ${name} is for clients that the backend opens, and one was given.`);
}

function wholeMilliseconds(least: number): OptionReader<number> {
  const read = milliseconds(least, MAX_TIMEOUT_MS);
  return (value, what) => Math.ceil(read(value, what));
}
