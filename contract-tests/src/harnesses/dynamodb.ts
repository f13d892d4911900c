import {
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';
import { dynamodbBackend } from '@locks/dynamodb';
import { at, serverIn } from './connections/server-url.ts';
import { servedHarness } from './connections/served-harness.ts';
import { closedWith } from './connections/shared-clients.ts';

const TABLE = 'locks';
/** All backends of a process share one, as those of an application would. */
let client: DynamoDBClient | undefined;

/** The server that `DYNAMODB_URL` names, else a private one. */
export default servedHarness<string>({
  module: import.meta.url,
  name: 'dynamodb',
  variable: 'LOCKS_CONFORMANCE_DYNAMODB',
  async start() {
    const { startDynamodb, startProxy } = await import('@locks/test-servers');
    const given = process.env['DYNAMODB_URL'];
    const server = given ? undefined : await startDynamodb();
    const direct = given || (server?.url as string);
    const proxy = await startProxy(serverIn(direct), { protocol: 'raw' });
    return {
      ...{ direct, proxied: at(direct, proxy), proxies: [proxy] },
      async stop() {
        await proxy.stop();
        await server?.stop();
      },
    };
  },
  async prepare({ direct, proxied = direct }) {
    const command = new CreateTableCommand({
      TableName: TABLE,
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
    });
    await shared(proxied)
      .send(command)
      .catch((error: unknown) => {
        if ((error as Error).name !== 'ResourceInUseException') throw error;
      });
    return 'DynamoDB Local 3.3';
  },
  hasPrefix: true,
  createBackend(endpoint, served, prefix) {
    const options = { table: TABLE, ...(prefix !== undefined && { prefix }) };
    const backend = dynamodbBackend(shared(endpoint), options);
    // A backend never destroys a client that it was given. A child process has no teardown: there the client ends with its backend.
    return served === undefined ? closedWith(backend, end) : backend;
  },
  end,
  faults: (direct) => ({
    wire: {
      servers: () => [serverIn(direct())],
      createBackend([address]) {
        const own = openDynamodb(at(direct(), address));
        return closedWith(dynamodbBackend(own, { table: TABLE }), async () => own.destroy());
      },
    },
    async evict(resource) {
      const own = openDynamodb(direct());
      const Key = { key: { S: `locks/lock/${resource}` } };
      await own.send(new DeleteItemCommand({ TableName: TABLE, Key })).finally(() => own.destroy());
    },
    async corrupt(resource) {
      const own = openDynamodb(direct());
      const Item = { key: { S: `locks/lock/${resource}` }, of: { S: 'another program' } };
      await own.send(new PutItemCommand({ TableName: TABLE, Item })).finally(() => own.destroy());
    },
  }),
  timing: { slackMs: 1_000, idleGapMs: 4_200 },
});

function shared(endpoint: string): DynamoDBClient {
  return (client ??= openDynamodb(endpoint));
}

async function end(): Promise<void> {
  client?.destroy();
  client = undefined;
}

function openDynamodb(endpoint: string): DynamoDBClient {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  return new DynamoDBClient({ endpoint, region: 'eu-central-1', credentials });
}
