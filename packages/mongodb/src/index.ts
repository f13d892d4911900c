export { mongodbBackend } from './mongodb-backend.ts';
export type { MongodbBackendOptions } from './options.ts';
export { mongodbSlots, mongodbResults } from './slot-store.ts';
