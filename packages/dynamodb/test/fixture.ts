import { randomUUID } from 'node:crypto';
import { CreateTableCommand, DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import type { RecordVersion, RecordWrite, RequestLimit } from '@locks/record-protocol';
import { type DynamodbServer, startDynamodb } from '@locks/test-servers';
import { DynamodbStore } from '../src/dynamodb-store.ts';
import { checkOptions, type DynamodbBackendOptions } from '../src/options.ts';

let started: Promise<DynamodbServer> | undefined;

/** The server of this file; vitest runs each file in a process of its own, and the server ends with it. */
export function server(): Promise<DynamodbServer> {
  return (started ??= startDynamodb());
}

export function openClient(endpoint: string, more: DynamoDBClientConfig = {}): DynamoDBClient {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  return new DynamoDBClient({ endpoint, region: 'eu-central-1', credentials, ...more });
}

export async function createTable(
  client: DynamoDBClient,
  keyAttribute = 'key',
  name = `locks-${randomUUID()}`,
): Promise<string> {
  await client.send(
    new CreateTableCommand({
      TableName: name,
      KeySchema: [{ AttributeName: keyAttribute, KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: keyAttribute, AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
    }),
  );
  return name;
}

/** A store on a table of its own. */
export async function openStore(
  options: Partial<DynamodbBackendOptions> & { readonly client?: DynamoDBClient } = {},
) {
  const { client = openClient((await server()).url), ...others } = options;
  const table = options.table ?? (await createTable(client, options.keyAttribute));
  return { client, table, store: new DynamodbStore(checkOptions(client, { ...others, table })) };
}

export function limit(timeoutMs = 10_000): RequestLimit {
  return { timeoutMs, signal: AbortSignal.timeout(timeoutMs) };
}

export function write(key: string, value: string | undefined, ifVersion?: RecordVersion): RecordWrite {
  return { key, value: value === undefined ? undefined : Buffer.from(value), ifVersion, isIdle: false };
}

export function textOf(record: { readonly value: Uint8Array } | undefined): string | undefined {
  return record && Buffer.from(record.value).toString();
}

export const NASTY_KEYS = [
  'locks/lock/a/b',
  'locks/lock/..',
  'locks/lock/.',
  'locks/lock/a\nb',
  'locks/lock/😀 é',
  'locks/lock/*',
  'locks/lock/>',
  'locks/lock/ending.',
  'locks/lock/ending/',
  'locks/lock/Ending.',
  'locks/lock/%2f=2f',
  'locks/lock/\u0000\u0001',
  `locks/lock/${'é'.repeat(256)}`,
  `locks/lock/${'/'.repeat(512)}`,
  `locks/lock/${'/'.repeat(511)}`,
] as const;
