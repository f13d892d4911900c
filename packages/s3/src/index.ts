export type { S3BackendOptions } from './options.ts';
export { s3Backend } from './s3-backend.ts';
export { s3Slots, s3Results } from './slot-store.ts';
