export { type MysqlCapabilities, mysqlBackend } from './mysql-backend.ts';
export type { MysqlBackendOptions } from './options.ts';
export { schemaStatements } from './tables.ts';
