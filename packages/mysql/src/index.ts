export { type MysqlCapabilities, mysqlBackend } from './mysql-backend.ts';
export { mysqlSlots, type MysqlSlotsOptions } from './slot-store.ts';
export type { MysqlBackendOptions, MysqlPool } from './options.ts';
export { mysqlResults, type MysqlResultsOptions } from './result-store.ts';
export { schemaStatements } from './tables.ts';
