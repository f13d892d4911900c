/** A process that migrates a schema: `node lease-migrate-main.ts URL SCHEMA`. */
import { migrateLeaseSchema } from '../src/index.ts';

const [, , connectionString = '', schema = ''] = process.argv;
await migrateLeaseSchema({ connectionString, schema });
