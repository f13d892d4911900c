export { type MysqlCapabilities, mysqlBackend } from './mysql-backend.ts';
export { mysqlRecord, type MysqlRecordOptions } from './once-record.ts';
export type { MysqlBackendOptions } from './options.ts';
export { schemaStatements } from './tables.ts';
