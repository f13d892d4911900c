import { PutBucketVersioningCommand, S3Client } from '@aws-sdk/client-s3';
import { type MotoServer, startMoto } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locksHere } from '../program.ts';
import { makeBucket } from '../started-stores.ts';
import { diagnose, severities } from './diagnose.ts';

let server: MotoServer;
beforeAll(async () => {
  server = await startMoto();
});
afterAll(() => server.stop());

const urlOf = (bucket: string): string => `s3://${bucket}?endpoint=${server.url}`;

describe('locks doctor on S3', () => {
  it('finds nothing where nothing is wrong', async () => {
    await makeBucket(server.url, 'well');
    expect(await diagnose(urlOf('well'))).toEqual({ store: 's3', findings: [] });
  });

  it('s3/versioning: each write leaves a version', async () => {
    await makeBucket(server.url, 'versions');
    const client = new S3Client({ endpoint: server.url, region: 'us-east-1', forcePathStyle: true });
    const VersioningConfiguration = { Status: 'Enabled' } as const;
    const command = new PutBucketVersioningCommand({ Bucket: 'versions', VersioningConfiguration });
    await client.send(command).finally(() => client.destroy());
    expect(severities(await diagnose(urlOf('versions')))).toEqual({ 's3/versioning': 'warning' });
  });

  it('s3/bucket-missing: locks cannot work', async () => {
    expect(severities(await diagnose(urlOf('nowhere')))).toEqual({ 's3/bucket-missing': 'error' });
  });

  it('has the prefix in the URL or in --prefix, and not in both', async () => {
    await makeBucket(server.url, 'prefixes');
    const url = `s3://prefixes/of/ours/?endpoint=${server.url}`;
    expect((await locksHere(url, 'run', 'a', '--', 'true')).code).toBe(0);
    const both = await locksHere(url, 'ls', '--prefix', 'other/');
    expect(both).toMatchObject({ code: 64, stderr: expect.stringContaining('--prefix') });
  });
});
