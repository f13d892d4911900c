import { isNetworkError } from '@locks/record-protocol';

/** What S3 answers while it passes: too many requests, a conflict of two that were sent at once, its own failures. */
const RETRYABLE = new Set([
  'AbortError',
  'ConditionalRequestConflict',
  'InternalError',
  'OperationAborted',
  'RequestTimeout',
  'ServiceUnavailable',
  'SlowDown',
  'ThrottlingException',
  'TimeoutError',
  'TooManyRequests',
]);

/** What is read of an error of the SDK. */
interface AwsError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** The provider of the bucket does not compare: on it two could hold the same lock. */
export class ConditionsIgnoredError extends Error {
  override readonly name = 'ConditionsIgnoredError';
}

/** Whether the same request may succeed if repeated. Errors are told by name: a process may have two copies of the SDK. */
export function isRetryableS3Error(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const status = statusOf(error);
  // 501: what is not implemented.
  const isOfServer = status >= 500 && status !== 501;
  return RETRYABLE.has(error.name) || status === 429 || isOfServer || isNetworkError(error);
}

export function statusOf(error: unknown): number {
  return (error as AwsError).$metadata?.httpStatusCode ?? 0;
}

/** The error to throw: it says what to do about the bucket and its permissions. */
export function explained(error: unknown, bucket: string): unknown {
  if (!(error instanceof Error)) return error;
  if (error.name === 'NoSuchBucket')
    return new Error(`@locks/s3: there is no bucket "${bucket}" where the client looks. Create it first.`, {
      cause: error,
    });
  if (error.name === 'AccessDenied')
    return new Error(
      `@locks/s3: access to the bucket "${bucket}" was denied: ${error.message}. The permissions s3:GetObject, s3:PutObject ` +
        'and s3:DeleteObject for the objects are needed, and s3:ListBucket, without which an absent object is denied too.',
      { cause: error },
    );
  return error;
}
