import { isNetworkError } from '@locks/record-protocol';

/** What AWS answers while it passes: too many requests, a write to the same item in another region, its own failures. */
const RETRYABLE = new Set([
  'AbortError',
  'InternalServerError',
  'ProvisionedThroughputExceededException',
  'ReplicatedWriteConflictException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'TimeoutError',
  'TransactionConflictException',
]);

interface AwsError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Whether the same request may succeed if repeated. Errors are told by name: a process may have two copies of the SDK. */
export function isRetryableDynamodbError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { httpStatusCode = 0 } = (error as AwsError).$metadata ?? {};
  return RETRYABLE.has(error.name) || httpStatusCode >= 500 || isNetworkError(error);
}

/** The error to throw: it says what is wrong with the table, where DynamoDB speaks of resources and schemas. */
export function explained(error: unknown, table: string, keyAttribute: string): unknown {
  if (!(error instanceof Error)) return error;
  const wanted = `a table with the partition key "${keyAttribute}" of type S and no sort key`;
  if (error.name === 'ResourceNotFoundException')
    return new Error(
      `@locks/dynamodb: there is no table "${table}" in the region and the account of the client. Create ${wanted}.`,
      { cause: error },
    );
  if (error.name === 'ValidationException')
    return new Error(`@locks/dynamodb: "${table}" must be ${wanted}: ${error.message}`, { cause: error });
  return error;
}
