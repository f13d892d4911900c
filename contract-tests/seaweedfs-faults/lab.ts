import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { s3Backend } from '@locks/s3';
import { type SeaweedfsServer, seaweedfsCredentials, startSeaweedfs } from '@locks/test-servers';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

const BUCKET = 'locks';

export default class Lab extends FaultLab {
  readonly module = import.meta.url;

  async server(): Promise<SeaweedfsServer> {
    const server = this.use(await startSeaweedfs());
    const client = openS3(server);
    await client.send(new CreateBucketCommand({ Bucket: BUCKET })).finally(() => client.destroy());
    return server;
  }

  /** Locks on a client of their own, as one process has them. */
  locks(at: Address, options: LockOptions = {}): LockManager {
    const client = openS3(at);
    this.defer(() => client.destroy());
    return this.use(createLocks(s3Backend(client, { bucket: BUCKET, waiterTtlMs: 3_000 }), options));
  }
}

function openS3({ host, port }: Address): S3Client {
  return new S3Client({
    endpoint: `http://${host}:${port}`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: seaweedfsCredentials,
  });
}
