import { setTimeout as delay } from 'node:timers/promises';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { startDynamodb } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { reportByDynamodb } from '../src/drivers/dynamodb.ts';

it('reports by DynamoDB one after the other', async () => {
  await using server = await startDynamodb();
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const config = { endpoint: server.url, region: 'eu-central-1', credentials };
  const client = new DynamoDBClient(config);
  const table = new CreateTableCommand({
    TableName: 'locks',
    KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  await client.send(table).finally(() => client.destroy());
  let inside = 0;
  const report = async (): Promise<number> => {
    inside += 1;
    await delay(5);
    const seen = inside;
    inside -= 1;
    return seen;
  };
  const all = Array.from({ length: 4 }, () => reportByDynamodb('locks', config, report));
  expect(await Promise.all(all)).toEqual([1, 1, 1, 1]);
});
