import type { S3Client } from '@aws-sdk/client-s3';
import { milliseconds, optional, type OptionTable, readClient, readOptions, text } from '@locks/core/backend';
import { expiryOption, skewOption } from '@locks/record-protocol';

/** The options of `s3Backend`. */
export interface S3BackendOptions {
  /** The name of the bucket, or the ARN or the alias of an access point. */
  readonly bucket: string;
  /**
   * The start of the keys of all objects: 0 to 128 characters of `A-Z a-z 0-9 _ . - /`, no slash first, and
   * without `lock/`, which stands between them and the name. Locks with different prefixes have nothing in common.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
  /**
   * `'clock'`: the lock of a dead holder is free by the time that the `Date` header of the answers tells, for a process too that has just started.
   * `'observed'`: only for a process that has seen it unchanged for its ttl; one that lives or waits for less never gets it. The same in
   * all processes.
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
  readonly expiry: 'clock' | 'observed';
  readonly skewMs: number;
  readonly maxPollMs: number;
  readonly waiterTtlMs: number;
}

const TABLE = {
  bucket: text(
    'the name of a bucket (3 to 63 characters of a-z 0-9 . -), or an ARN',
    /^(?:[\w.-]{3,255}|arn:[\w-]+:s3[\w-]*:.{1,1000})$/,
  ),
  prefix: optional(
    text(
      "0 to 128 characters of A-Z a-z 0-9 _ . - /, no slash first, without 'lock/'",
      /^(?!\/|.*lock\/)[\w./-]{0,128}$/,
    ),
    'locks/',
  ),
  expiry: expiryOption,
  skewMs: skewOption(1_000),
  maxPollMs: optional(milliseconds(50, 60_000), 2_000),
  waiterTtlMs: optional(milliseconds(1_000, 60_000), 10_000),
} satisfies OptionTable<S3BackendOptions>;

const ELSEWHERE = { client: 'the first argument' };

export function checkOptions(
  given: unknown,
  options: S3BackendOptions,
  what = 's3Backend()',
): CheckedS3Options {
  const client = readClient(what, 'client', given, 'an S3Client of @aws-sdk/client-s3', isClient);
  return { client, ...readOptions(what, options, TABLE, ELSEWHERE) };
}

/** Recognizes a client by its properties: another copy of the SDK may have made it, and other clients of AWS have the same methods. */
function isClient(value: unknown): value is S3Client {
  const { send, config } = (value ?? {}) as { send?: unknown; config?: { serviceId?: unknown } };
  return typeof send === 'function' && config?.serviceId === 'S3';
}
