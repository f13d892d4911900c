import {
  oneOf,
  optional,
  type OptionTable,
  readClient,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { expiryOption, prefixOption, skewOption } from '@locks/record-protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** The options of `natsBackend`. */
export interface NatsBackendOptions {
  /**
   * The bucket of the locks, 1 to 64 characters of `A-Z a-z 0-9 _ -`. Nothing else may write into it.
   *
   * @defaultValue `'locks'`
   */
  readonly bucket?: string;
  /**
   * Whether the first call makes the bucket where it is missing. `false`: `prepare()` of the locks does, or you.
   *
   * @defaultValue `true`
   */
  readonly autoPrepare?: boolean;
  /**
   * On how many servers a bucket is kept that the backend makes, 1 to 5. One that is there stays as it is.
   *
   * @defaultValue 3 where the server belongs to a cluster, else 1
   */
  readonly replicas?: number;
  /**
   * What the keys of all records start with, at most 128 characters without `lock/`, which stands between them and the name. Locks with different
   * prefixes have nothing in common.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
  /**
   * `'clock'`: the lock of a dead holder is free by the time of the bucket's leader, for a process too that has just started; with servers
   * from 2.10 on. `'observed'`: only for a process that has seen it unchanged for its ttl; one that lives or waits for less never gets it.
   * The same in all processes.
   *
   * @defaultValue `'clock'`
   */
  readonly expiry?: 'clock' | 'observed';
  /**
   * How far apart the clocks of the servers may be, in milliseconds, 0 to 60000. The locks of dead holders are free that much later.
   *
   * @defaultValue 1000
   */
  readonly skewMs?: number;
}

export interface CheckedNatsOptions {
  readonly connection: NatsConnection;
  readonly bucket: string;
  readonly autoPrepare: boolean;
  readonly replicas: number | undefined;
  readonly prefix: string;
  readonly expiry: 'clock' | 'observed';
  readonly skewMs: number;
}

const TABLE = {
  bucket: optional(text('1 to 64 characters of A-Z a-z 0-9 _ -', /^[-\w]{1,64}$/), 'locks'),
  autoPrepare: optional(oneOf(true, false), true),
  replicas: optional(wholeNumber(1, 5)),
  prefix: prefixOption,
  expiry: expiryOption,
  skewMs: skewOption(1_000),
} satisfies OptionTable<NatsBackendOptions>;

const ELSEWHERE = { connection: 'the first argument' };

export function checkOptions(
  given: unknown,
  options: NatsBackendOptions | undefined,
  what = 'natsBackend()',
): CheckedNatsOptions {
  const allowed = 'a connection, as connect() of @nats-io/transport-node gives it';
  const connection = readClient(what, 'connection', given, allowed, isConnection);
  return { connection, ...readOptions(what, options, TABLE, ELSEWHERE) };
}

/** Recognizes a connection by what is used of it: another copy of the package may have made it. */
function isConnection(value: unknown): value is NatsConnection {
  const { request, subscribe, status, isClosed } = (value ?? {}) as Partial<NatsConnection>;
  return [request, subscribe, status, isClosed].every((method) => typeof method === 'function');
}
