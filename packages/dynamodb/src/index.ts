export { dynamodbBackend } from './dynamodb-backend.ts';
export type { DynamodbBackendOptions } from './options.ts';
export { dynamodbSlots, dynamodbResults } from './slot-store.ts';
