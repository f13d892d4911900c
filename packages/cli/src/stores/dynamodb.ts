import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamodbBackend, dynamodbSlots } from '@locks/dynamodb';
import { examineDynamodb } from '@locks/dynamodb/doctor';
import { readNamedUrl, type StoreUrl } from '../store-url.ts';
import { UsageError } from '../usage-error.ts';
import type { OpenBackend } from './open-backend.ts';

const FORM = 'dynamodb://REGION/TABLE?endpoint=http://HOST:PORT&keyAttribute=key';

/** Credentials come from where the SDK of AWS looks for them: the environment, its files, the machine. */
export async function openDynamodb(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { host: region, path: table, parameters } = readNamedUrl(url, FORM, ['endpoint', 'keyAttribute']);
  if (region === '' || table === '')
    throw new UsageError(`--url or LOCKS_URL: a region or a table is missing: ${FORM}`);
  const [endpoint, keyAttribute] = [parameters.get('endpoint'), parameters.get('keyAttribute')];
  const client = new DynamoDBClient({ region, ...(endpoint !== undefined && { endpoint }) });
  const options = {
    table,
    ...(keyAttribute !== undefined && { keyAttribute }),
    ...(prefix !== undefined && { prefix }),
  };
  return {
    backend: dynamodbBackend(client, options),
    openSlots: async () => dynamodbSlots(client, options),
    closeClient: () => client.destroy(),
    examine: () => examineDynamodb(client, options),
  };
}
