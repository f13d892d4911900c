import { LockError } from '@locks/core';
import { Etcd3, type IOptions } from 'etcd3';

export interface EtcdBackendOptions {
  /**
   * What the keys of all locks start with. Nothing else may write there.
   * @defaultValue 'locks/'
   */
  readonly prefix?: string;
  /**
   * How long the places of a process in queues outlive it: what a process that dies, or stands still, while it waits
   * can cost the next in line. In milliseconds, rounded up to whole seconds; servers raise it to their shortest lease,
   * one and a half election timeouts.
   * @defaultValue 3000
   */
  readonly waiterTtlMs?: number;
  /**
   * How long one sending of a call may take before another member is asked, and for how long a keep-alive looks for a
   * member that answers, in milliseconds.
   * @defaultValue 3000
   */
  readonly callTimeoutMs?: number;
}

/** A client, which is never closed, or the options of one that the backend makes and closes itself. */
export type EtcdClient = Etcd3 | IOptions;

export interface CheckedOptions {
  readonly prefix: string;
  readonly waiterTtlSeconds: number;
  readonly callTimeoutMs: number;
}

export interface ClientSource {
  /** Made at the first call: building a backend does no I/O. */
  readonly get: () => Etcd3;
  /** Closes what was made here. */
  readonly close: () => void;
}

export function checkOptions(options: EtcdBackendOptions): CheckedOptions {
  const { prefix = 'locks/', waiterTtlMs = 3_000, callTimeoutMs = 3_000 } = options;
  if (
    typeof prefix !== 'string' ||
    prefix === '' ||
    !prefix.isWellFormed() ||
    Buffer.byteLength(prefix) > 512
  ) {
    throw invalidArgument(`prefix must be 1 to 512 bytes of well-formed Unicode, not ${show(prefix)}.`);
  }
  checkMs('waiterTtlMs', waiterTtlMs, 1_000, 60_000);
  checkMs('callTimeoutMs', callTimeoutMs, 50, 60_000);
  return { prefix, waiterTtlSeconds: Math.ceil(waiterTtlMs / 1_000), callTimeoutMs };
}

export function clientSource(client: EtcdClient): ClientSource {
  if (isClient(client)) return { get: () => client, close: () => {} };
  checkHosts(client, 'etcdBackend() takes an Etcd3 client of the package etcd3, or its options');
  let own: Etcd3 | undefined;
  return {
    get: () => (own ??= new Etcd3(clientOptions(client))),
    close: () => own?.close(),
  };
}

function checkHosts(options: IOptions, takes: string): void {
  const hosts = (options as Partial<IOptions> | null | undefined)?.hosts;
  if (typeof hosts === 'string' || (Array.isArray(hosts) && hosts.length > 0)) return;
  throw invalidArgument(
    `${takes} with hosts, for example { hosts: 'http://127.0.0.1:2379' }, not ${show(options)}.`,
  );
}

/** Another copy of etcd3 than ours may have made it: judged by what it has. */
function isClient(client: EtcdClient): client is Etcd3 {
  const { kv, leaseClient, watchClient } = (client ?? {}) as Partial<Etcd3>;
  return kv !== undefined && leaseClient !== undefined && watchClient !== undefined;
}

/**
 * Options for a client of your own that suits locks, as the backend sets them for one that it makes: whatever you set stays.
 * The defaults of `etcd3` refuse a host for five seconds after three failures, which ends leases where it is the only
 * host, and use a connection that swallows everything again and again.
 *
 * @example
 * ```ts
 * const client = new Etcd3(clientOptions({ hosts: 'http://10.0.0.1:2379' }));
 * const locks = createLocks(etcdBackend(client));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function clientOptions(options: IOptions): IOptions {
  checkHosts(options, 'clientOptions() takes options of an Etcd3 client');
  return {
    ...options,
    grpcOptions: {
      // A connection that swallows everything is given up with the call that ran out of time on it.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1_000,
      // Servers refuse pings more often than every 5 s.
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

function checkMs(name: string, value: number, least: number, most: number): void {
  if (typeof value === 'number' && value >= least && value <= most) return;
  throw invalidArgument(
    `${name} must be a number of milliseconds from ${least} to ${most}, not ${show(value)}.`,
  );
}

function invalidArgument(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', message, { backend: 'etcd' });
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  if (typeof value === 'object')
    return value === null ? 'null' : `an object with ${Object.keys(value).join(', ') || 'nothing'}`;
  return typeof value === 'number' ? String(value) : `a ${typeof value}`;
}
