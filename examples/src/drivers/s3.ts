import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { createLocks } from '@locks/core';
import { s3Backend } from '@locks/s3';

/** Does the work under the lock `report`, in a bucket of S3. */
export async function reportByS3<T>(
  bucket: string,
  config: S3ClientConfig,
  work: () => Promise<T>,
): Promise<T> {
  const client = new S3Client(config);
  const locks = createLocks(s3Backend(client, { bucket }));
  try {
    return await locks.lock('report').run(work, { waitMs: 20_000 });
  } finally {
    await locks.close();
    client.destroy();
  }
}
