import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type TableDescription,
} from '@aws-sdk/client-dynamodb';
import { type Diagnosis, error, type Finding, found, unknown, warning } from '@locks/core/doctor';
import { type CheckedDynamodbOptions, checkOptions, type DynamodbBackendOptions } from './options.ts';

// setup: import { DynamoDBClient } from '@aws-sdk/client-dynamodb'; import { examineDynamodb } from '@locks/dynamodb/doctor';
/**
 * Examines the table of the locks: its key, its time to live, its replicas. Nothing is written.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the SDK as they are
 * @example
 * ```ts
 * const { findings } = await examineDynamodb(new DynamoDBClient({}), { table: 'locks' });
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineDynamodb(
  client: DynamoDBClient,
  options: DynamodbBackendOptions,
): Promise<Diagnosis> {
  const checked = checkOptions(client, options, 'examineDynamodb()');
  return { store: 'dynamodb', version: undefined, findings: await findingsOf(checked) };
}

async function findingsOf(options: CheckedDynamodbOptions): Promise<Finding[]> {
  const { client, table, keyAttribute } = options;
  let description: TableDescription | undefined;
  try {
    ({ Table: description } = await client.send(new DescribeTableCommand({ TableName: table })));
  } catch (cause) {
    if (isNamed(cause, 'ResourceNotFoundException')) return [missingFinding(table, keyAttribute)];
    if (isNamed(cause, 'AccessDeniedException')) return [deniedFinding('dynamodb:DescribeTable')];
    throw cause;
  }
  const key = description && keyFinding(description, keyAttribute);
  if (key !== undefined) return [key];
  const isSplit =
    (description?.Replicas ?? []).length > 0 && description?.MultiRegionConsistency !== 'STRONG';
  return found(isSplit && replicasFinding(table), await ttlFinding(options));
}

async function ttlFinding({
  client,
  table,
  ttlAttribute,
}: CheckedDynamodbOptions): Promise<Finding | undefined> {
  try {
    const { TimeToLiveDescription: ttl } = await client.send(
      new DescribeTimeToLiveCommand({ TableName: table }),
    );
    const isOn = ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING';
    if (isOn && ttl?.AttributeName === ttlAttribute) return undefined;
    const what = isOn
      ? `the time to live of the table is that of "${ttl?.AttributeName}", and the locks write "${ttlAttribute}"`
      : 'the table has no time to live';
    return warning(
      'dynamodb/ttl',
      `${what}: the items of names that nobody uses any more stay`,
      `enable TTL for the attribute ${ttlAttribute}, unless your names are few`,
    );
  } catch (cause) {
    if (isNamed(cause, 'AccessDeniedException')) return deniedFinding('dynamodb:DescribeTimeToLive');
    throw cause;
  }
}

function keyFinding(
  { KeySchema = [], AttributeDefinitions = [] }: TableDescription,
  keyAttribute: string,
): Finding | undefined {
  const [partition] = KeySchema;
  const type = AttributeDefinitions.find(
    ({ AttributeName }) => AttributeName === partition?.AttributeName,
  )?.AttributeType;
  if (KeySchema.length === 1 && partition?.AttributeName === keyAttribute && type === 'S') return undefined;
  const names = KeySchema.map(({ AttributeName }) => AttributeName).join(', ');
  return error(
    'dynamodb/key',
    `the key of the table is "${names}", and locks need the partition key "${keyAttribute}" of type S and no sort key`,
    'give the locks a table of their own, or name the partition key in keyAttribute',
  );
}

function missingFinding(table: string, keyAttribute: string): Finding {
  return error(
    'dynamodb/table-missing',
    `there is no table "${table}" in this region and account`,
    `create it with the partition key "${keyAttribute}" of type S and no sort key, and billing by request`,
  );
}

function replicasFinding(table: string): Finding {
  return error(
    'dynamodb/replicas',
    `"${table}" is a global table whose regions agree later: in two regions two may hold one lock`,
    'let all programs that share the locks use one region, or a global table with strong consistency',
  );
}

function deniedFinding(right: string): Finding {
  return unknown(
    'dynamodb/describe',
    'this user may not see how the table is set up',
    `allow ${right} to the user of the doctor; locks need it not`,
  );
}

/** Errors are told by name: a process may have two copies of the SDK. */
function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}
