import { s3Harness } from './s3/s3-harness.ts';

/** The S3 gateway of SeaweedFS, or of the one that `SEAWEEDFS_URL` names. */
export default s3Harness({
  module: import.meta.url,
  name: 's3-seaweedfs',
  topology: 'seaweedfs',
  urlVariable: 'SEAWEEDFS_URL',
  server: 'SeaweedFS 4.48',
  async start() {
    const { startSeaweedfs } = await import('@locks/test-servers');
    return await startSeaweedfs();
  },
});
