import type { S3Client } from '@aws-sdk/client-s3';
import {
  matching,
  milliseconds,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  text,
} from '@locks/core/backend';

/** The options of `s3Backend`. */
export interface S3BackendOptions {
  /** A client of `@aws-sdk/client-s3`. The backend never destroys it. */
  readonly client: S3Client;
  /** The name of the bucket, or the ARN or the alias of an access point. */
  readonly bucket: string;
  /**
   * The start of the keys of all objects: 0 to 128 characters of `A-Z a-z 0-9 _ . - /`, no slash first. Locks with different prefixes
   * have nothing in common, unless one prefix begins with another.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
  /**
   * `'date-header'`: the `Date` header of the answers is the clock by which the holds of dead processes end, for a process too that
   * has just started. Without it such a hold ends for a process that has watched it for its ttl.
   *
   * @defaultValue none
   */
  readonly clock?: 'date-header';
  /**
   * How far apart the clocks of the servers may be, in milliseconds, 0 to 60000. Holds of dead processes end that much later. For the
   * clock `'date-header'`.
   *
   * @defaultValue 1000
   */
  readonly skewMs?: number;
  /**
   * The longest pause between two polls of a process that waits, in milliseconds, 50 to 60000.
   *
   * @defaultValue 2000
   */
  readonly maxPollMs?: number;
  /**
   * The delay that a process which dies or stalls while it waits can cause for the next waiter, in milliseconds, 1000 to 60000. A
   * process that waits writes more than twice in that time.
   *
   * @defaultValue 10000
   */
  readonly waiterTtlMs?: number;
}

export interface CheckedS3Options {
  readonly client: S3Client;
  readonly bucket: string;
  readonly prefix: string;
  readonly clock: 'date-header' | undefined;
  readonly skewMs: number;
  readonly maxPollMs: number;
  readonly waiterTtlMs: number;
}

const TABLE = {
  client: matching('an S3Client of @aws-sdk/client-s3', isClient),
  bucket: text(
    'the name of a bucket (3 to 63 characters of a-z 0-9 . -), or an ARN',
    /^(?:[\w.-]{3,255}|arn:[\w-]+:s3[\w-]*:.{1,1000})$/,
  ),
  prefix: optional(
    text('0 to 128 characters of A-Z a-z 0-9 _ . - /, no slash first', /^(?!\/)[\w./-]{0,128}$/),
    'locks/',
  ),
  clock: optional(oneOf('date-header')),
  skewMs: optional(milliseconds(0, 60_000), 1_000),
  maxPollMs: optional(milliseconds(50, 60_000), 2_000),
  waiterTtlMs: optional(milliseconds(1_000, 60_000), 10_000),
} satisfies OptionTable<S3BackendOptions>;

export function checkOptions(options: S3BackendOptions): CheckedS3Options {
  return readOptions('s3Backend()', options, TABLE);
}

/** Recognizes a client by its properties: another copy of the SDK may have made it, and other clients of AWS have the same methods. */
function isClient(value: unknown): value is S3Client {
  const { send, config } = (value ?? {}) as { send?: unknown; config?: { serviceId?: unknown } };
  return typeof send === 'function' && config?.serviceId === 'S3';
}
