import {
  invalidArgument,
  matching,
  MAX_TIMEOUT_MS,
  milliseconds,
  optional,
  type OptionReader,
  type OptionTable,
  text,
} from '@locks/core/backend';

/** The options that apply with servers and with a client of yours. */
export interface CommonOptions {
  /**
   * The node that all locks are under; the backend creates it if it is missing.
   * @defaultValue '/locks'
   */
  readonly path?: string;
  /**
   * The time that the node of an unused resource stays, in milliseconds.
   * @defaultValue 5 000
   */
  readonly tidyMs?: number;
  /**
   * The longest wait of a call for a connection before it fails, in milliseconds. Core repeats the call until `waitMs`.
   * @defaultValue 5 000
   */
  readonly connectTimeoutMs?: number;
}

/** The options of a client that the backend makes itself. */
export interface ServerOptions<Client> {
  /** The connect string: `host:port,host:port,…`, followed by a path for a chroot. */
  readonly servers: string;
  /**
   * The time that the servers keep a session whose client is silent, in milliseconds: the delay that the death of a holder
   * causes. The servers have bounds of their own, usually 4 to 40 seconds.
   * @defaultValue 10 000
   */
  readonly sessionTimeoutMs?: number;
  /** Called with each client that the backend opens, before it connects, for example to add credentials. */
  readonly prepare?: (client: Client) => void;
}

export const DEFAULT_SESSION_MS = 10_000;

export interface CheckedZookeeperOptions {
  readonly path: string;
  readonly tidyMs: number;
  readonly connectTimeoutMs: number;
}

export const COMMON_TABLE = {
  path: optional(
    text('a path of a node, like "/locks", and not "/"', /^(?!.*\/\.{1,2}(\/|$))(\/[^/\0]+)+$/s),
    '/locks',
  ),
  tidyMs: optional(wholeMilliseconds(10), 5_000),
  connectTimeoutMs: optional(wholeMilliseconds(1), 5_000),
} satisfies OptionTable<CommonOptions>;

/** The options of the clients that the backend opens: none of them can be combined with `client`. */
export const SERVER_TABLE = {
  servers: optional(text('a connect string, like "zk1:2181,zk2:2181,zk3:2181"', /^[^\s/]+(\/\S*)?$/)),
  sessionTimeoutMs: optional(wholeMilliseconds(100)),
  prepare: optional(matching('a function', (value) => typeof value === 'function')),
} satisfies OptionTable<ServerOptions<never>>;

/**
 * Checks that either a client or the servers are given.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function checkSource(caller: string, options: object): void {
  const given = options as Readonly<Record<string, unknown>>;
  const names = ['client', ...Object.keys(SERVER_TABLE)].filter((name) => given[name] !== undefined);
  if (!names.includes('client') && !names.includes('servers'))
    throw invalidArgument(`${caller} takes either servers or client, and neither was given.`);
  if (names.includes('client') && names.length > 1)
    throw invalidArgument(
      `${caller}: ${names[1]} cannot be combined with client: it is for clients that the backend opens.`,
    );
}

function wholeMilliseconds(least: number): OptionReader<number> {
  const read = milliseconds(least, MAX_TIMEOUT_MS);
  return (value, what) => Math.ceil(read(value, what));
}
