import { setTimeout as delay } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { startMoto } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { reportByS3 } from '../src/drivers/s3.ts';

it('reports by S3 one after the other', async () => {
  await using server = await startMoto();
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const config = { endpoint: server.url, region: 'us-east-1', forcePathStyle: true, credentials };
  const client = new S3Client(config);
  await client.send(new CreateBucketCommand({ Bucket: 'reports' })).finally(() => client.destroy());
  let inside = 0;
  const report = async (): Promise<number> => {
    inside += 1;
    await delay(5);
    const seen = inside;
    inside -= 1;
    return seen;
  };
  const all = Array.from({ length: 4 }, () => reportByS3('reports', config, report));
  expect(await Promise.all(all)).toEqual([1, 1, 1, 1]);
});
