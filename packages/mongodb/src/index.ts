export { mongodbBackend } from './mongodb-backend.ts';
export type { MongodbBackendOptions } from './options.ts';
