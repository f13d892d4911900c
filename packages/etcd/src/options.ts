import { matching, milliseconds, mustBe, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { Etcd3, type IOptions } from 'etcd3';

/** The options of `etcdBackend`. */
export interface EtcdBackendOptions {
  /**
   * The prefix of all keys: 1 to 512 bytes that end with a slash, without `//`. One more slash stands behind it, so locks with different
   * prefixes have nothing in common. Nothing else may write keys with this prefix and a second slash.
   * @defaultValue 'locks/'
   */
  readonly prefix?: string;
  /**
   * The time that the queue entries of a process outlive it: the delay that a process which dies or stalls while it waits can
   * cause for the next waiter. In milliseconds, rounded up to whole seconds. Servers raise it to their minimum lease, one
   * and a half election timeouts.
   * @defaultValue 3000
   */
  readonly waiterTtlMs?: number;
  /**
   * The time limit of one request, before it is sent to another member; also the time for which a keep-alive tries to
   * reach a member. In milliseconds.
   * @defaultValue 3000
   */
  readonly requestTimeoutMs?: number;
}

/** A client, which the backend never closes, or the options of a client that the backend makes and closes itself. */
export type EtcdClient = Etcd3 | IOptions;

export interface CheckedEtcdOptions {
  readonly prefix: string;
  readonly waiterTtlSeconds: number;
  readonly requestTimeoutMs: number;
}

export interface EtcdClientSource {
  /** Makes a client at the first call only: building a backend does no I/O. */
  readonly get: () => Etcd3;
  /** Closes the client that was made here, if any. */
  readonly close: () => void;
}

/** The options of a client. */
interface OptionsSource {
  readonly options: IOptions;
}

export const REQUEST_TIMEOUT_MS = 3_000;

const TABLE = {
  prefix: optional(
    matching("1 to 512 bytes of well-formed Unicode that end with '/', without '//'", isPrefix),
    'locks/',
  ),
  waiterTtlMs: optional(milliseconds(1_000, 60_000), 3_000),
  requestTimeoutMs: optional(milliseconds(50, 60_000), REQUEST_TIMEOUT_MS),
} satisfies OptionTable<EtcdBackendOptions>;

const asGiven = (value: unknown): unknown => value;
/** The options of `etcd3`, which checks their values itself. */
const CLIENT_TABLE = {
  hosts: matching("an address or several without a password, for example 'http://127.0.0.1:2379'", isHosts),
  credentials: asGiven,
  auth: asGiven,
  grpcOptions: asGiven,
  defaultCallOptions: asGiven,
  dialTimeout: asGiven,
  faultHandling: asGiven,
} satisfies OptionTable<IOptions>;

export function checkOptions(
  options: EtcdBackendOptions | undefined,
  caller = 'etcdBackend()',
): CheckedEtcdOptions {
  const first = `the first argument of ${caller}`;
  const elsewhere = Object.fromEntries(Object.keys(CLIENT_TABLE).map((name) => [name, first]));
  const { prefix, waiterTtlMs, requestTimeoutMs } = readOptions(caller, options, TABLE, elsewhere);
  return { prefix, waiterTtlSeconds: Math.ceil(waiterTtlMs / 1_000), requestTimeoutMs };
}

export function clientSource(client: EtcdClient, caller = 'etcdBackend()'): EtcdClientSource & OptionsSource {
  // The options are protected in the types of etcd3.
  if (isClient(client))
    return { get: () => client, close: () => {}, options: (client as unknown as OptionsSource).options };
  const first = `the first argument of ${caller}`;
  const takes =
    "an Etcd3 client of the package etcd3, or its options, for example { hosts: 'http://127.0.0.1:2379' }";
  if (typeof client !== 'object' || client === null) throw mustBe(first, takes, client);
  checkClientOptions(first, client, `the second argument of ${caller}`);
  let own: Etcd3 | undefined;
  return {
    get: () => (own ??= new Etcd3(clientOptions(client))),
    close: () => own?.close(),
    options: client,
  };
}

/** The options of a function that keeps records or results. */
export interface EtcdSlotsOptions {
  /**
   * The prefix of all keys, as that of the locks: 1 to 512 bytes that end with a slash, without `//`.
   * @defaultValue 'locks/'
   */
  readonly prefix?: string;
}

/**
 * What a function needs that keeps records or results.
 *
 * @param what - the function that the user called, for messages: `etcdSlots()`
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function slotSource(
  what: string,
  client: Etcd3,
  options: EtcdSlotsOptions | undefined,
): { readonly source: EtcdClientSource; readonly prefix: string } {
  if (!isClient(client)) throw mustBe(`${what}: the client`, 'an Etcd3 client of the package etcd3', client);
  const { prefix } = readOptions(what, options, { prefix: TABLE.prefix });
  return { source: { get: () => client, close: () => {} }, prefix };
}

/** Refuses unknown options: `etcd3` would ignore them, and with a misplaced `prefix` the locks would have other keys. */
function checkClientOptions(
  caller: string,
  options: IOptions,
  second = 'the second argument of etcdBackend()',
): void {
  const elsewhere = Object.fromEntries(Object.keys(TABLE).map((name) => [name, second]));
  readOptions(caller, options, CLIENT_TABLE, elsewhere);
}

function isHosts(value: unknown): value is IOptions['hosts'] {
  const hosts: unknown[] = Array.isArray(value) ? value : [value];
  // A password in an address stands in every message of a connection: `auth` is the place for it.
  return hosts.length > 0 && hosts.every((host) => typeof host === 'string' && !host.includes('@'));
}

function isPrefix(value: unknown): value is string {
  if (typeof value !== 'string' || !value.endsWith('/') || value.includes('//')) return false;
  return value.isWellFormed() && Buffer.byteLength(value) <= 512;
}

/** Recognizes a client by its properties, since another copy of etcd3 may have made it. */
function isClient(client: EtcdClient): client is Etcd3 {
  const { kv, leaseClient, watchClient } = (client ?? {}) as Partial<Etcd3>;
  return kv !== undefined && leaseClient !== undefined && watchClient !== undefined;
}

// setup: import { createLocks } from '@locks/core'; import { clientOptions, etcdBackend } from '@locks/etcd'; import { Etcd3 } from 'etcd3';
/**
 * Completes the options for a client of your own with those that the backend sets for its clients; what you set stays.
 * The defaults of `etcd3` do not suit locks: they refuse a host for five seconds after three failures, which ends leases
 * if it is the only host, and they keep using a connection that is dead without a reset.
 *
 * @example
 * ```ts
 * const client = new Etcd3(clientOptions({ hosts: 'http://10.0.0.1:2379' }));
 * const locks = createLocks(etcdBackend(client));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function clientOptions(options: IOptions): IOptions {
  checkClientOptions('clientOptions()', options);
  return {
    ...options,
    grpcOptions: {
      // A client with a pool of its own drops a dead connection together with the call that timed out on it.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1_000,
      // Servers refuse more than one ping in 5 s.
      'grpc.keepalive_time_ms': 10_000,
      'grpc.keepalive_timeout_ms': 3_000,
      ...options.grpcOptions,
    },
    faultHandling: { host: () => withoutBreaker, ...options.faultHandling },
  };
}

type HostPolicy = ReturnType<NonNullable<NonNullable<IOptions['faultHandling']>['host']>>;

const withoutBreaker = {
  execute: async <T>(work: (context: object) => Promise<T> | T): Promise<T> => await work({}),
} as unknown as HostPolicy;
