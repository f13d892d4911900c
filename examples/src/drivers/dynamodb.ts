import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { createLocks } from '@locks/core';
import { dynamodbBackend } from '@locks/dynamodb';

/** Does the work under the lock `report`, in a table of DynamoDB, as a Lambda would that lives for this one call. */
export async function reportByDynamodb<T>(
  table: string,
  config: DynamoDBClientConfig,
  work: () => Promise<T>,
): Promise<T> {
  const client = new DynamoDBClient(config);
  const locks = createLocks(dynamodbBackend(client, { table }));
  try {
    return await locks.lock('report').run(work, { waitMs: 10_000 });
  } finally {
    await locks.close();
    client.destroy();
  }
}
