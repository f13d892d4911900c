import { randomUUID } from 'node:crypto';
import { DeleteTableCommand, DescribeTimeToLiveCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createLocks, type LockManager } from '@locks/core';
import { expect, it, onTestFinished } from 'vitest';
import { examineDynamodb } from '../src/doctor.ts';
import { dynamodbBackend, type DynamodbBackendOptions } from '../src/index.ts';
import { openClient, server } from './fixture.ts';

function locksOn(client: DynamoDBClient, options: DynamodbBackendOptions): LockManager {
  const locks = createLocks(dynamodbBackend(client, options));
  onTestFinished(() => locks.close());
  return locks;
}

it('makes a table that locks work in and the doctor finds nothing about, also where others make it too', async () => {
  const client = openClient((await server()).url);
  const options = { table: `locks-${randomUUID()}`, keyAttribute: 'id', ttlAttribute: 'until' };
  const locks = locksOn(client, options);
  await Promise.all([locks.prepare(), locksOn(client, options).prepare()]);
  await locks.prepare();
  await locks.lock('a').run((lease) => lease.assertValid());
  expect(await examineDynamodb(client, options)).toMatchObject({ store: 'dynamodb', findings: [] });
});

it('enables the time to live where two processes have seen it disabled', async () => {
  const client = openClient((await server()).url);
  const options = { table: `locks-${randomUUID()}`, ttlAttribute: 'until' };
  let looks = 0;
  let tellBoth = (): void => undefined;
  const bothHaveLooked = new Promise<void>((resolve) => (tellBoth = resolve));
  let updates: Promise<void> = Promise.resolve();
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        if (commandName === 'UpdateTimeToLiveCommand') {
          // One after the other: at once, the server may take both.
          const before = updates;
          let tell = (): void => undefined;
          updates = new Promise<void>((resolve) => (tell = resolve));
          await before;
          return await next(args).finally(tell);
        }
        const answer = await next(args);
        if (commandName !== 'DescribeTimeToLiveCommand') return answer;
        looks += 1;
        if (looks === 2) tellBoth();
        await bothHaveLooked;
        return answer;
      },
    { step: 'initialize' },
  );
  await Promise.all([locksOn(client, options).prepare(), locksOn(client, options).prepare()]);
  const { TimeToLiveDescription } = await client.send(
    new DescribeTimeToLiveCommand({ TableName: options.table }),
  );
  expect(TimeToLiveDescription).toMatchObject({ AttributeName: 'until', TimeToLiveStatus: 'ENABLED' });
});

it('rejects where the time to live cannot be enabled', async () => {
  const client = openClient((await server()).url);
  const options = { table: `locks-${randomUUID()}` };
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        if (commandName === 'UpdateTimeToLiveCommand')
          await openClient((await server()).url).send(new DeleteTableCommand({ TableName: options.table }));
        return next(args);
      },
    { step: 'initialize' },
  );
  await expect(locksOn(client, options).prepare()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    cause: { name: 'ResourceNotFoundException' },
  });
});

it('asks for no right to create a table that is there, and names the rights where one is missing', async () => {
  const client = openClient((await server()).url);
  const options = { table: `locks-${randomUUID()}` };
  await locksOn(client, options).prepare();
  const modest = openClient((await server()).url);
  // The server of the tests knows no rights: the refusal is as AWS answers it.
  modest.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        if (commandName !== 'CreateTableCommand') return next(args);
        const message = 'User: app is not authorized to perform: dynamodb:CreateTable';
        return Promise.reject(Object.assign(new Error(message), { name: 'AccessDeniedException' }));
      },
    { step: 'initialize' },
  );
  await locksOn(modest, options).prepare();
  await expect(locksOn(modest, { table: `locks-${randomUUID()}` }).prepare()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    message: expect.stringMatching(/dynamodb:CreateTable.*needs the actions DescribeTable, CreateTable/),
  });
});
