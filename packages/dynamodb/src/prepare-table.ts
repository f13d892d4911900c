import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import type { CheckedDynamodbOptions } from './options.ts';

/** A table is made within seconds. One that is not there by then is waited for by the next call. */
const LIMIT_SECONDS = 600;
const LONGEST_PAUSE_SECONDS = 5;

/** What a request is made with: its end. */
interface Requested {
  readonly abortSignal?: AbortSignal;
}

/**
 * Makes the table of the locks unless it exists, billed by request, and enables its time to live. Resolves once the table can be used. A
 * table that is there needs no right to create one.
 */
export async function prepareTable(options: CheckedDynamodbOptions, signal?: AbortSignal): Promise<void> {
  const requested = signal === undefined ? {} : { abortSignal: signal };
  try {
    const status = await tableStatus(options, requested);
    if (status === undefined) await createTable(options, requested);
    if (status !== 'ACTIVE') await waitForTable(options, requested);
    await enableTimeToLive(options, requested);
  } catch (error) {
    throw explainedRight(error, options.table);
  }
}

async function tableStatus(
  { client, table }: CheckedDynamodbOptions,
  requested: Requested,
): Promise<string | undefined> {
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: table }), requested);
    return Table?.TableStatus;
  } catch (error) {
    if ((error as Error).name === 'ResourceNotFoundException') return undefined;
    throw error;
  }
}

async function createTable(
  { client, table, keyAttribute }: CheckedDynamodbOptions,
  requested: Requested,
): Promise<void> {
  const command = new CreateTableCommand({
    TableName: table,
    KeySchema: [{ AttributeName: keyAttribute, KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: keyAttribute, AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  await client.send(command, requested).catch((error: unknown) => {
    // Another process makes it at the same time.
    if ((error as Error).name !== 'ResourceInUseException') throw error;
  });
}

async function waitForTable({ client, table }: CheckedDynamodbOptions, requested: Requested): Promise<void> {
  const times = { maxWaitTime: LIMIT_SECONDS, minDelay: 1, maxDelay: LONGEST_PAUSE_SECONDS };
  await waitUntilTableExists({ client, ...times, ...requested }, { TableName: table });
}

async function enableTimeToLive(options: CheckedDynamodbOptions, requested: Requested): Promise<void> {
  if (await hasTimeToLive(options, requested)) return;
  const { client, table, ttlAttribute } = options;
  const TimeToLiveSpecification = { AttributeName: ttlAttribute, Enabled: true };
  const command = new UpdateTimeToLiveCommand({ TableName: table, TimeToLiveSpecification });
  try {
    await client.send(command, requested);
  } catch (error) {
    // DynamoDB refuses to enable it twice, as where another process has done so since this one looked.
    if (!(await hasTimeToLive(options, requested))) throw error;
  }
}

async function hasTimeToLive(
  { client, table }: CheckedDynamodbOptions,
  requested: Requested,
): Promise<boolean> {
  const command = new DescribeTimeToLiveCommand({ TableName: table });
  const { TimeToLiveDescription } = await client.send(command, requested);
  return (TimeToLiveDescription?.TimeToLiveStatus ?? 'DISABLED') !== 'DISABLED';
}

/** DynamoDB names the action that it refuses; the others would be refused next. */
function explainedRight(error: unknown, table: string): unknown {
  if ((error as Error | undefined)?.name !== 'AccessDeniedException') return error;
  const needed = 'DescribeTable, CreateTable, DescribeTimeToLive and UpdateTimeToLive';
  return new Error(
    `${(error as Error).message}. prepare() of the table ${table} needs the actions ${needed} of dynamodb.`,
    {
      cause: error,
    },
  );
}
