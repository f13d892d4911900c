import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  invalidArgument,
  milliseconds,
  optional,
  type OptionTable,
  readClient,
  readOptions,
  text,
} from '@locks/core/backend';
import { expiryOption, prefixOption, skewOption } from '@locks/record-protocol';

/** The options of `dynamodbBackend`. */
export interface DynamodbBackendOptions {
  /** The name of the table, or its ARN. Its partition key is {@link keyAttribute}, a string, and it has no sort key. */
  readonly table: string;
  /**
   * The name of the partition key of the table.
   *
   * @defaultValue `'key'`
   */
  readonly keyAttribute?: string;
  /**
   * The name of the attribute that TTL is enabled for. Only the item of a lock that nobody holds or waits for has it.
   *
   * @defaultValue `'expiresAt'`
   */
  readonly ttlAttribute?: string;
  /**
   * How long an item stays that nobody holds or waits for, in milliseconds, 86400000 (a day) to 31536000000, if TTL is enabled.
   *
   * @defaultValue 604800000, seven days
   */
  readonly idleTtlMs?: number;
  /**
   * The start of all keys, at most 128 characters without `lock/`, which stands between them and the name. Locks with different
   * prefixes have nothing in common.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
  /**
   * `'clock'`: the lock of a dead holder is free by the time that the `Date` header of DynamoDB's answers tells, for a process too that has just started.
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
   * @defaultValue 1000
   */
  readonly maxPollMs?: number;
  /**
   * The delay that a process which dies or stalls while it waits can cause for the next waiter, in milliseconds, 1000 to 60000. A
   * process that waits writes more than twice in that time.
   *
   * @defaultValue 3000
   */
  readonly waiterTtlMs?: number;
}

export interface CheckedDynamodbOptions {
  readonly client: DynamoDBClient;
  readonly table: string;
  readonly keyAttribute: string;
  readonly ttlAttribute: string;
  readonly idleTtlMs: number;
  readonly prefix: string;
  readonly expiry: 'clock' | 'observed';
  readonly skewMs: number;
  readonly maxPollMs: number;
  readonly waiterTtlMs: number;
}

/** Attributes of an item besides its key. */
export const VERSION = 'version';
export const VALUE = 'value';

const attribute = text('1 to 255 characters', /^[^]{1,255}$/);

const TABLE = {
  table: text(
    'the name of a table (3 to 255 characters of A-Z a-z 0-9 _ . -), or its ARN',
    /^(?:[\w.-]{3,255}|arn:[\w-]+:dynamodb:[\w-]+:\d+:table\/[\w.-]{3,255})$/,
  ),
  keyAttribute: optional(attribute, 'key'),
  ttlAttribute: optional(attribute, 'expiresAt'),
  idleTtlMs: optional(milliseconds(86_400_000, 31_536_000_000), 604_800_000),
  prefix: prefixOption,
  expiry: expiryOption,
  skewMs: skewOption(1_000),
  maxPollMs: optional(milliseconds(50, 60_000), 1_000),
  waiterTtlMs: optional(milliseconds(1_000, 60_000), 3_000),
} satisfies OptionTable<DynamodbBackendOptions>;

const ELSEWHERE = { client: 'the first argument' };

export function checkOptions(
  given: unknown,
  options: DynamodbBackendOptions,
  what = 'dynamodbBackend()',
): CheckedDynamodbOptions {
  const client = readClient(what, 'client', given, 'a DynamoDBClient of @aws-sdk/client-dynamodb', isClient);
  const read = readOptions(what, options, TABLE, ELSEWHERE);
  const names = new Set([VERSION, VALUE, read.keyAttribute, read.ttlAttribute]);
  if (names.size < 4)
    throw invalidArgument(
      `${what}: keyAttribute and ttlAttribute must be two names besides ${VERSION} and ${VALUE}, which items have too.`,
    );
  return { client, ...read };
}

/** Recognizes a client by its properties: another copy of the SDK may have made it, and a client of S3 has the same methods. */
function isClient(value: unknown): value is DynamoDBClient {
  const { send, config } = (value ?? {}) as { send?: unknown; config?: { serviceId?: unknown } };
  return typeof send === 'function' && config?.serviceId === 'DynamoDB';
}
