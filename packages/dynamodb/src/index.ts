export { dynamodbBackend } from './dynamodb-backend.ts';
export type { DynamodbBackendOptions } from './options.ts';
