import { randomUUID } from 'node:crypto';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { AWS, counting, isConflict } from './aws.ts';
import { backend } from './clients.ts';
import { type Client, type Contender, foreign, ours, pauseBetweenPolls, TTL_MS } from './contender.ts';

const store = 'dynamodb';
export const DYNAMODB_TABLE = 'locks';

const client: Client<DynamoDBClient> = {
  packages: ['@aws-sdk/client-dynamodb'],
  async connect(endpoint) {
    const { DynamoDBClient: Sdk, GetItemCommand } = await import('@aws-sdk/client-dynamodb');
    const opened = counting(new Sdk({ endpoint, ...AWS }));
    const absent = { TableName: DYNAMODB_TABLE, Key: { key: { S: 'ping' } } };
    const ping = () => opened.send(new GetItemCommand(absent));
    return { client: opened, ping, close: () => opened.destroy() };
  },
};

/** A put on the condition that the item is absent or has expired, and a delete by its owner. No token, and no queue. */
const rawPut = foreign({ store, name: 'raw conditional put', kind: 'floor' }, client, async (dynamodb) => {
  const { DeleteItemCommand, PutItemCommand } = await import('@aws-sdk/client-dynamodb');
  return async (name) => {
    const key = { S: `raw/${name}` };
    const owner = { S: randomUUID() };
    const take = async (): Promise<boolean> => {
      const now = Date.now();
      const put = new PutItemCommand({
        TableName: DYNAMODB_TABLE,
        Item: { key, owner, expiresAt: { N: String(now + TTL_MS) } },
        ConditionExpression: 'attribute_not_exists(#key) OR expiresAt <= :now',
        ExpressionAttributeNames: { '#key': 'key' },
        ExpressionAttributeValues: { ':now': { N: String(now) } },
      });
      return await dynamodb.send(put).then(() => true, refused);
    };
    while (!(await take())) await pauseBetweenPolls();
    return () =>
      dynamodb.send(
        new DeleteItemCommand({
          TableName: DYNAMODB_TABLE,
          Key: { key },
          ConditionExpression: '#owner = :owner',
          ExpressionAttributeNames: { '#owner': 'owner' },
          ExpressionAttributeValues: { ':owner': owner },
        }),
      );
  };
});

function refused(error: unknown): false {
  if (isConflict(error)) return false;
  throw error;
}

export const dynamodbContenders: readonly Contender[] = [
  rawPut,
  ours(
    { store, name: '@locks/dynamodb', floor: rawPut.name },
    backend('@locks/dynamodb', client, async (dynamodb) =>
      (await import('@locks/dynamodb')).dynamodbBackend(dynamodb, { table: DYNAMODB_TABLE }),
    ),
  ),
];
