import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AttributeValue,
  BatchGetItemCommand,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb';
import {
  clockOf,
  type RecordClock,
  type RecordPace,
  type RecordsRead,
  type RecordStore,
  type RecordWrite,
  type RecordWritten,
  type RequestLimit,
  type StoredRecord,
} from '@locks/record-protocol';
import { watchAnswerTime } from './answer-time.ts';
import { explained, isRetryableDynamodbError } from './dynamodb-errors.ts';
import { type CheckedDynamodbOptions, VALUE, VERSION } from './options.ts';
import { prepareTable } from './prepare-table.ts';

type Item = Record<string, AttributeValue>;
type Command = GetItemCommand | BatchGetItemCommand | PutItemCommand | DeleteItemCommand | ScanCommand;
/** What all answers and the refusals of a condition may have. */
interface Answer {
  readonly Item?: Item;
  readonly Items?: readonly Item[];
  readonly LastEvaluatedKey?: Item;
  readonly Responses?: Readonly<Record<string, readonly Item[]>>;
  readonly UnprocessedKeys?: Readonly<Record<string, { readonly Keys?: Item[] }>>;
}

/** An item has at most 400 KB with the names of its attributes. The longest key is some 1 000 bytes. */
const MOST_BYTES = 400 * 1_024 - 4_096;
/** `Date` has whole seconds. */
const STEP_MS = 1_000;
const MIN_POLL_MS = 10;
const UNPROCESSED_PAUSE_MS = 20;

/** Records as items of one table. The version is random, and new with each write: it never comes back. */
export class DynamodbStore implements RecordStore {
  readonly name = 'dynamodb';
  readonly maxValueBytes = MOST_BYTES;
  readonly pace: RecordPace;
  readonly clock: RecordClock;
  readonly #options: CheckedDynamodbOptions;

  /** The latest time that DynamoDB has told, in milliseconds since 1970. */
  #toldNow = 0;

  constructor(options: CheckedDynamodbOptions) {
    const { maxPollMs, waiterTtlMs } = options;
    this.#options = options;
    this.pace = { minPollMs: MIN_POLL_MS, maxPollMs, waiterTtlMs };
    this.clock = clockOf(options, STEP_MS);
  }

  async read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const [key] = keys;
    if (key === undefined || keys.length > 1) return await this.#readBatch(keys, limit);
    const command = new GetItemCommand({ ...this.#table, Key: this.#keyOf(key), ConsistentRead: true });
    const { answer, told } = await this.#send(command, limit);
    return { records: [recordOf(answer.Item)], ...told() };
  }

  async write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const version = randomBytes(12).toString('base64url');
    const { answer, told, isRefused } = await this.#send(this.#commandOf(write, version), limit);
    if (!isRefused) return { status: 'written', version, ...told() };
    return { status: 'conflict', present: recordOf(answer.Item) ?? 'absent', ...told() };
  }

  async *list(prefix: string, limit: RequestLimit): AsyncGenerator<StoredRecord> {
    let from: Item | undefined;
    do {
      const command = new ScanCommand({
        ...this.#table,
        ConsistentRead: true,
        FilterExpression: 'begins_with(#key, :prefix)',
        ExpressionAttributeNames: { '#key': this.#options.keyAttribute },
        ExpressionAttributeValues: { ':prefix': { S: prefix } },
        ...(from && { ExclusiveStartKey: from }),
      });
      const { answer } = await this.#send(command, limit);
      yield* (answer.Items ?? []).map(recordOf).filter((record) => record !== undefined);
      from = answer.LastEvaluatedKey;
    } while (from !== undefined);
  }

  async prepare({ signal }: { readonly signal?: AbortSignal }): Promise<void> {
    await prepareTable(this.#options, signal);
  }

  isRetryable(error: unknown): boolean {
    return isRetryableDynamodbError(error);
  }

  async close(): Promise<void> {}

  async #readBatch(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const { table, keyAttribute } = this.#options;
    const found = new Map<string | undefined, StoredRecord | undefined>();
    let now = {};
    // A request that names a key twice is refused.
    let wanted = [...new Set(keys)].map((key) => this.#keyOf(key));
    for (let pauseMs = UNPROCESSED_PAUSE_MS; wanted.length > 0; pauseMs *= 2) {
      const request = { RequestItems: { [table]: { Keys: wanted, ConsistentRead: true } } };
      const { answer, told } = await this.#send(new BatchGetItemCommand(request), limit);
      now = told();
      for (const item of answer.Responses?.[table] ?? []) found.set(item[keyAttribute]?.S, recordOf(item));
      wanted = answer.UnprocessedKeys?.[table]?.Keys ?? [];
      const pause = pauseMs * (0.5 + Math.random());
      if (wanted.length > 0) await sleep(pause, undefined, { signal: limit.signal });
    }
    return { records: keys.map((key) => found.get(key)), ...now };
  }

  get #table() {
    return { TableName: this.#options.table };
  }

  #keyOf(key: string): Item {
    return { [this.#options.keyAttribute]: { S: key } };
  }

  #commandOf(
    { key, value, ifVersion, isIdle }: RecordWrite,
    version: string,
  ): PutItemCommand | DeleteItemCommand {
    const { keyAttribute, ttlAttribute, idleTtlMs } = this.#options;
    const isNew = ifVersion === undefined;
    const conditions = {
      ...this.#table,
      ConditionExpression: isNew ? 'attribute_not_exists(#name)' : '#name = :version',
      ExpressionAttributeNames: { '#name': isNew ? keyAttribute : VERSION },
      ...(!isNew && { ExpressionAttributeValues: { ':version': { S: String(ifVersion) } } }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    };
    if (value === undefined) return new DeleteItemCommand({ ...conditions, Key: this.#keyOf(key) });
    // The whole item is replaced: one that is not idle any more loses its expiry.
    // A clock that is behind would let DynamoDB delete the item too early.
    const now = Math.max(Date.now(), this.#toldNow);
    const expiry = { [ttlAttribute]: { N: String(Math.ceil((now + idleTtlMs) / 1_000)) } };
    const item = { [VERSION]: { S: version }, [VALUE]: { B: value }, ...(isIdle && expiry) };
    return new PutItemCommand({ ...conditions, Item: { ...this.#keyOf(key), ...item } });
  }

  /** Sends a command; an item that does not meet its condition is an answer. */
  async #send(any: Command, limit: RequestLimit) {
    // The types of the SDK know one command at a time.
    const command = any as GetItemCommand;
    const time = watchAnswerTime(command);
    const told = (): { now?: number } => {
      const now = time();
      if (now === undefined) return {};
      this.#toldNow = Math.max(this.#toldNow, now);
      return { now };
    };
    try {
      const options = { abortSignal: limit.signal };
      const answer: Answer = await this.#options.client.send(command, options);
      return { answer, told, isRefused: false };
    } catch (error) {
      if ((error as Error).name === 'ConditionalCheckFailedException')
        return { answer: error as Answer, told, isRefused: true };
      throw explained(error, this.#options.table, this.#options.keyAttribute);
    }
  }
}

/** The record in an item. What something else has written is a record without content, which is none of a lock. */
function recordOf(item: Item | undefined): StoredRecord | undefined {
  if (item === undefined) return undefined;
  const { [VALUE]: value, [VERSION]: version } = item;
  return { value: value?.B ?? new Uint8Array(), version: version?.S ?? '' };
}
