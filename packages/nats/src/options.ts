import {
  matching,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { prefixOption } from '@locks/record-protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** The options of `natsBackend`. */
export interface NatsBackendOptions {
  /** A connection of `@nats-io/transport-node`, or of another transport of NATS. The backend never closes it. */
  readonly connection: NatsConnection;
  /**
   * The bucket of the locks, 1 to 64 characters of `A-Z a-z 0-9 _ -`. Nothing else may write into it.
   *
   * @defaultValue `'locks'`
   */
  readonly bucket?: string;
  /**
   * Whether the bucket is made at the first call where it is missing. With `false` it must be there.
   *
   * @defaultValue `true`
   */
  readonly createBucket?: boolean;
  /**
   * On how many servers a bucket is kept that the backend makes, 1 to 5. One that is there stays as it is.
   *
   * @defaultValue 3 where the server belongs to a cluster, else 1
   */
  readonly replicas?: number;
  /**
   * What the keys of all records start with, at most 128 characters. Locks with different prefixes have nothing in common, unless one
   * prefix begins with another.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
}

export interface CheckedNatsOptions {
  readonly connection: NatsConnection;
  readonly bucket: string;
  readonly createBucket: boolean;
  readonly replicas: number | undefined;
  readonly prefix: string;
}

const TABLE = {
  connection: matching('a connection, as connect() of @nats-io/transport-node gives it', isConnection),
  bucket: optional(text('1 to 64 characters of A-Z a-z 0-9 _ -', /^[-\w]{1,64}$/), 'locks'),
  createBucket: optional(oneOf(true, false), true),
  replicas: optional(wholeNumber(1, 5)),
  prefix: prefixOption,
} satisfies OptionTable<NatsBackendOptions>;

export function checkOptions(options: NatsBackendOptions): CheckedNatsOptions {
  return readOptions('natsBackend()', options, TABLE);
}

/** Recognizes a connection by what is used of it: another copy of the package may have made it. */
function isConnection(value: unknown): value is NatsConnection {
  const { request, subscribe, status, isClosed } = (value ?? {}) as Partial<NatsConnection>;
  return [request, subscribe, status, isClosed].every((method) => typeof method === 'function');
}
