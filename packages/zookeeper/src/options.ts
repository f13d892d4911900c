import { LockError } from '@locks/core';

export interface CommonOptions {
  /**
   * The node under which all locks are, made when missing.
   * @defaultValue '/locks'
   */
  readonly path?: string;
  /**
   * How long the node of a resource that nobody uses stays, in milliseconds.
   * @defaultValue 5 000
   */
  readonly tidyMs?: number;
  /**
   * How long a call waits for a connection before it fails (and is repeated by core until `waitMs`), in milliseconds.
   * @defaultValue 5 000
   */
  readonly connectTimeoutMs?: number;
}

export interface ServerOptions<Client> {
  /** The connect string: `host:port,host:port,…`, with a path behind it for a chroot. */
  readonly servers: string;
  /**
   * How long the servers keep a session whose client is silent, in milliseconds: what the death of a holder costs. The
   * servers have bounds of their own for it, usually 4 to 40 seconds.
   * @defaultValue 10 000
   */
  readonly sessionTimeoutMs?: number;
  /** Called with each client that the backend opens, before it connects: for credentials. */
  readonly prepare?: (client: Client) => void;
}

const DEFAULT_SESSION_MS = 10_000;
const SHORTEST_SESSION_MS = 100;
const LONGEST_MS = 2 ** 31 - 1;

export interface ResolvedOptions {
  readonly path: string;
  readonly tidyMs: number;
  readonly connectTimeoutMs: number;
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function resolveOptions(options: CommonOptions): ResolvedOptions {
  const { path = '/locks', tidyMs = 5_000, connectTimeoutMs = 5_000 } = options;
  const legal = typeof path === 'string' && /^(\/[^/\0]+)+$/.test(path) && !/\/\.{1,2}(\/|$)/.test(path);
  if (!legal) throw mustBe('path', 'a path of a node, like "/locks", and not "/"', path);
  return {
    path,
    tidyMs: checkMs('tidyMs', tidyMs, 10),
    connectTimeoutMs: checkMs('connectTimeoutMs', connectTimeoutMs, 1),
  };
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function checkServers(servers: unknown): string {
  if (typeof servers === 'string' && /^[^\s/]+(\/\S*)?$/.test(servers)) return servers;
  throw mustBe('servers', 'a connect string, like "zk1:2181,zk2:2181,zk3:2181"', servers);
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function checkSessionTimeout(ms: unknown = DEFAULT_SESSION_MS): number {
  return checkMs('sessionTimeoutMs', ms, SHORTEST_SESSION_MS);
}

function checkMs(name: string, value: unknown, least: number): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= least && value <= LONGEST_MS)
    return Math.ceil(value);
  throw mustBe(name, `a number of milliseconds from ${least} to ${LONGEST_MS}`, value);
}

export function mustBe(name: string, what: string, value: unknown): LockError {
  const given = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return new LockError('LOCK_INVALID_ARGUMENT', `${name} must be ${what}, not ${given}.`);
}
