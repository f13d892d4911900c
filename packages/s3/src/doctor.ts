import type { S3Client } from '@aws-sdk/client-s3';
import { GetBucketVersioningCommand } from '@aws-sdk/client-s3';
import { type Diagnosis, error, type Finding, found, unknown, warning } from '@locks/core/doctor';
import { conditionsOf } from './conditions.ts';
import { type CheckedS3Options, checkOptions, type S3BackendOptions } from './options.ts';
import { ConditionsIgnoredError, statusOf } from './s3-errors.ts';

const LIMIT_MS = 10_000;

// setup: import { S3Client } from '@aws-sdk/client-s3'; import { examineS3 } from '@locks/s3/doctor';
/**
 * Examines the bucket of the locks: whether its provider honours conditional writes, and whether it keeps old versions. Writes the object
 * `probe`, as the first lock does.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the SDK as they are
 * @example
 * ```ts
 * const { findings } = await examineS3(new S3Client({}), { bucket: 'my-locks' });
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineS3(client: S3Client, options: S3BackendOptions): Promise<Diagnosis> {
  const checked = checkOptions(client, options, 'examineS3()');
  return { store: 's3', version: undefined, findings: await findingsOf(checked) };
}

async function findingsOf(options: CheckedS3Options): Promise<Finding[]> {
  const { client, bucket, prefix } = options;
  try {
    const { compareOnDelete } = await conditionsOf(client, bucket, prefix, AbortSignal.timeout(LIMIT_MS));
    return found(!compareOnDelete && deletionFinding(), await versioningFinding(options));
  } catch (cause) {
    if (cause instanceof ConditionsIgnoredError) return [conditionsFinding(cause)];
    if ((cause as Error).name === 'NoSuchBucket') return [missingFinding(bucket)];
    if (statusOf(cause) === 403) return [rightsFinding(cause as Error)];
    throw cause;
  }
}

async function versioningFinding({ client, bucket }: CheckedS3Options): Promise<Finding | undefined> {
  try {
    const { Status: status } = await client.send(new GetBucketVersioningCommand({ Bucket: bucket }));
    if (status !== 'Enabled') return undefined;
    return warning(
      's3/versioning',
      'the bucket keeps old versions: each acquire, renewal and release leaves one, which is paid for',
      'use a bucket without versioning, or let a lifecycle rule end old versions after a day',
    );
  } catch (cause) {
    // 501: the provider has no versions.
    if (statusOf(cause) === 501) return undefined;
    if (statusOf(cause) !== 403) throw cause;
    return unknown(
      's3/describe',
      'this user may not see whether the bucket keeps old versions',
      'allow s3:GetBucketVersioning to the user of the doctor; locks need it not',
    );
  }
}

function conditionsFinding({ message }: Error): Finding {
  return error('s3/conditions', message, 'use a provider that honours If-None-Match and If-Match');
}

function deletionFinding(): Finding {
  return warning(
    's3/delete',
    'the provider does not compare where an object is deleted: empty objects stay in their place',
    'let a lifecycle rule end objects of the prefix that were not written for a day',
  );
}

function missingFinding(bucket: string): Finding {
  return error(
    's3/bucket-missing',
    `there is no bucket "${bucket}" where the client looks`,
    'create it, or correct the region or the endpoint',
  );
}

function rightsFinding({ message }: Error): Finding {
  return error(
    's3/rights',
    `access was denied: ${message}`,
    'allow s3:GetObject, s3:PutObject and s3:DeleteObject for the objects, and s3:ListBucket',
  );
}
