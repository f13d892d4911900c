import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { canFindServer, startDynamodb, startMongodb, startMoto, startNats } from '@locks/test-servers';
import type { TestbedServer } from '../conduct/testbed.ts';
import { AWS } from '../contenders/aws.ts';
import { DYNAMODB_TABLE } from '../contenders/dynamodb.ts';
import { S3_BUCKET } from '../contenders/s3.ts';
import { describedServer, type Store } from './store.ts';

const counting = 'the clients: each request that they sent, repetitions included';

const dynamodbStore: Store = {
  ...{ id: 'dynamodb', counting },
  async start() {
    return await describedServer(await startDynamodb(), async ({ url }) => {
      const client = new DynamoDBClient({ endpoint: url, ...AWS });
      const table = new CreateTableCommand({
        TableName: DYNAMODB_TABLE,
        KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
        AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
        BillingMode: 'PAY_PER_REQUEST',
      });
      await client.send(table).finally(() => client.destroy());
      return { url, versions: { 'DynamoDB Local': '3.3' } };
    });
  },
};

const s3Store: Store = {
  ...{ id: 's3', counting },
  async start() {
    return await describedServer(await startMoto(), async ({ url }) => {
      const client = new S3Client({ endpoint: url, forcePathStyle: true, ...AWS });
      const bucket = new CreateBucketCommand({ Bucket: S3_BUCKET });
      await client.send(bucket).finally(() => client.destroy());
      return { url, versions: { moto: '5.2' } };
    });
  },
};

const natsStore: Store = {
  ...{ id: 'nats', counting },
  start: async () => plain(await startNats(), { 'nats-server': '2.15' }),
};

const mongodbStore: Store = {
  ...{ id: 'mongodb', counting },
  start: async () => plain(await startMongodb(), { 'mongo-java-server': '1.47' }),
};

/** The stores on which a lock is a record that is compared and swapped. */
export const recordStores: readonly Store[] = [dynamodbStore, s3Store, natsStore, mongodbStore];

/** What is missing, where the server of a store is not here. */
export function absenceOf({ id }: Store): string | undefined {
  return canFindServer(id)
    ? undefined
    : `${id}: no server here; node test-servers/install.mjs ${id} fetches it`;
}

async function plain(
  server: { readonly url: string; stop(): Promise<void> },
  versions: TestbedServer['versions'],
): Promise<TestbedServer> {
  return await describedServer(server, async ({ url }) => ({ url, versions }));
}
