import { s3Harness } from './s3/s3-harness.ts';

/** moto, or the server that `S3_URL` names. */
export default s3Harness({
  module: import.meta.url,
  name: 's3',
  urlVariable: 'S3_URL',
  server: 'moto 5.2',
  async start() {
    const { startMoto } = await import('@locks/test-servers');
    return await startMoto();
  },
});
