import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { dynamodbBackend } from '@locks/dynamodb';
import { type DynamodbServer, startDynamodb } from '@locks/test-servers';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

const TABLE = 'locks';
/** The server takes some three seconds to come back on a busy machine, which must not count as the silence of those who wait. */
export const WAITER_TTL_MS = 6_000;

export default class Lab extends FaultLab {
  readonly module = import.meta.url;

  async server(): Promise<DynamodbServer> {
    const server = this.use(await startDynamodb({ onDisk: true }));
    const client = openDynamodb(server);
    const command = new CreateTableCommand({
      TableName: TABLE,
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
    });
    await client.send(command).finally(() => client.destroy());
    return server;
  }

  /** Locks on a client of their own, as one process has them. */
  locks(at: Address, options: LockOptions = {}): LockManager {
    const client = openDynamodb(at);
    this.defer(() => client.destroy());
    return this.use(
      createLocks(dynamodbBackend(client, { table: TABLE, waiterTtlMs: WAITER_TTL_MS }), options),
    );
  }
}

function openDynamodb({ host, port }: Address): DynamoDBClient {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  return new DynamoDBClient({ endpoint: `http://${host}:${port}`, region: 'eu-central-1', credentials });
}
