import { DynamoDBClient, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb';
import { type DynamodbServer, startDynamodb } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locksHere } from '../program.ts';
import { makeTable } from '../started-stores.ts';
import { diagnose, severities } from './diagnose.ts';

let server: DynamodbServer;
beforeAll(async () => {
  server = await startDynamodb();
});
afterAll(() => server.stop());

const urlOf = (table: string): string => `dynamodb://eu-central-1/${table}?endpoint=${server.url}`;

async function enableTtl(table: string, AttributeName: string): Promise<void> {
  const client = new DynamoDBClient({ endpoint: server.url, region: 'eu-central-1' });
  const TimeToLiveSpecification = { AttributeName, Enabled: true };
  const command = new UpdateTimeToLiveCommand({ TableName: table, TimeToLiveSpecification });
  await client.send(command).finally(() => client.destroy());
}

describe('locks doctor on DynamoDB', () => {
  it('finds nothing where nothing is wrong', async () => {
    await makeTable(server.url, 'well');
    await enableTtl('well', 'expiresAt');
    expect(await diagnose(urlOf('well'))).toEqual({ store: 'dynamodb', findings: [] });
  });

  it('dynamodb/ttl: items of names that nobody uses stay', async () => {
    await makeTable(server.url, 'kept');
    expect(severities(await diagnose(urlOf('kept')))).toEqual({ 'dynamodb/ttl': 'warning' });
    await enableTtl('kept', 'other');
    expect(severities(await diagnose(urlOf('kept')))).toEqual({ 'dynamodb/ttl': 'warning' });
  });

  it('dynamodb/table-missing, dynamodb/key: locks cannot work', async () => {
    expect(severities(await diagnose(urlOf('nowhere')))).toEqual({ 'dynamodb/table-missing': 'error' });
    await makeTable(server.url, 'keyed', 'id');
    expect(severities(await diagnose(urlOf('keyed')))).toEqual({ 'dynamodb/key': 'error' });
    const named = `${urlOf('keyed')}&keyAttribute=id`;
    expect(severities(await diagnose(named))).toEqual({ 'dynamodb/ttl': 'warning' });
  });

  it('says what is wrong with a URL', async () => {
    for (const url of ['dynamodb://eu-central-1', 'dynamodb:///locks', `${urlOf('well')}&tabel=x`]) {
      const { code, stderr } = await locksHere(url, 'ls');
      expect([code, stderr]).toEqual([64, expect.stringContaining('dynamodb://REGION/TABLE')]);
    }
  });
});
