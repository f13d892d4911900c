import { mysqlSlots } from '@locks/mysql';
import type { SlotStore } from '@locks/once';
import { createPool } from 'mysql2/promise';

const TIMEOUT_MS = 10_000;

/**
 * The slot store of `@locks/mysql` in the database of a URL. Each call has a connection of its own: work may take hours between two.
 *
 * @param tablePrefix - the prefix of the tables of the locks, whose backend has checked it
 */
export function mysqlSlotsAt(uri: string, tablePrefix: string | undefined): SlotStore {
  const use = async <T>(work: (slots: SlotStore) => Promise<T>): Promise<T> => {
    const pool = createPool({ uri, connectTimeout: TIMEOUT_MS, connectionLimit: 1 });
    try {
      return await work(mysqlSlots(pool, tablePrefix === undefined ? {} : { tablePrefix }));
    } finally {
      await pool.end().catch(() => undefined);
    }
  };
  return {
    read: (name) => use((slots) => slots.read(name)),
    write: (name, entry) => use((slots) => slots.write(name, entry)),
  };
}
