import { mysqlRecord } from '@locks/mysql';
import type { OnceRecord } from '@locks/once';
import { createPool } from 'mysql2/promise';

const TIMEOUT_MS = 10_000;

/**
 * The record of `@locks/mysql` in the database of a URL. Each call has a connection of its own: a job may take hours between two.
 *
 * @param tablePrefix - the prefix of the tables of the locks, whose backend has checked it
 */
export function mysqlRecordAt(uri: string, tablePrefix: string | undefined): OnceRecord {
  const use = async <T>(work: (record: OnceRecord) => Promise<T>): Promise<T> => {
    const pool = createPool({ uri, connectTimeout: TIMEOUT_MS, connectionLimit: 1 });
    try {
      return await work(mysqlRecord(pool, tablePrefix === undefined ? {} : { tablePrefix }));
    } finally {
      await pool.end().catch(() => undefined);
    }
  };
  return {
    read: (job) => use((record) => record.read(job)),
    write: (job, entry) => use((record) => record.write(job, entry)),
  };
}
