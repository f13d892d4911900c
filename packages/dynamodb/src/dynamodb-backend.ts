import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { DynamodbStore } from './dynamodb-store.ts';
import { checkOptions, type DynamodbBackendOptions } from './options.ts';

// setup: import { DynamoDBClient } from '@aws-sdk/client-dynamodb'; import { createLocks } from '@locks/core'; import { dynamodbBackend } from '@locks/dynamodb';
/**
 * Locks in a table of Amazon DynamoDB. Does no I/O; the first call reaches the table, which must exist.
 *
 * @param client - a client of `@aws-sdk/client-dynamodb`, or a document client made from one, which the backend never destroys
 * @example
 * ```ts
 * const client = new DynamoDBClient({});
 * const locks = createLocks(dynamodbBackend(client, { table: 'locks' }));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function dynamodbBackend(
  client: DynamoDBClient,
  options: DynamodbBackendOptions,
): LockBackend<RecordCapabilities> {
  const checked = checkOptions(client, options);
  return createRecordBackend(new DynamodbStore(checked), { prefix: checked.prefix });
}
