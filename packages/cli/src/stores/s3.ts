import { S3Client } from '@aws-sdk/client-s3';
import { s3Backend, s3Slots } from '@locks/s3';
import { examineS3 } from '@locks/s3/doctor';
import { readNamedUrl, type StoreUrl } from '../store-url.ts';
import { UsageError } from '../usage-error.ts';
import type { OpenBackend } from './open-backend.ts';

const FORM = 's3://BUCKET/PREFIX?region=REGION&endpoint=http://HOST:PORT';
/** A provider that has no regions takes any. */
const ANY_REGION = 'us-east-1';

/** Credentials come from where the SDK of AWS looks for them: the environment, its files, the machine. */
export async function openS3(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { host: bucket, path, parameters } = readNamedUrl(url, FORM, ['endpoint', 'region']);
  if (bucket === '') throw new UsageError(`--url or LOCKS_URL: the bucket is missing: ${FORM}`);
  if (path !== '' && prefix !== undefined)
    throw new UsageError('--prefix: the URL has a prefix already, behind the bucket');
  const [endpoint, region] = [parameters.get('endpoint'), parameters.get('region')];
  const client = new S3Client({
    ...(region !== undefined && { region }),
    // Other providers than Amazon have the bucket in the path.
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true, region: region ?? ANY_REGION }),
  });
  const own = prefix ?? (path === '' ? undefined : path);
  const options = { bucket, ...(own !== undefined && { prefix: own }) };
  return {
    backend: s3Backend(client, options),
    openSlots: async () => s3Slots(client, options),
    closeClient: () => client.destroy(),
    examine: () => examineS3(client, options),
  };
}
