import { type SlotStore, refuseNewerSlotEntry, type SlotEntry } from '@locks/core/backend';
import type { Pool as CallbackPool } from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';
import { FencedTable, sqlText } from './fenced-table.ts';
import { ONCE_SLOTS_COLUMNS } from './tables.ts';

/** The options of `mysqlSlots`. */
export interface MysqlSlotsOptions {
  /**
   * The database of the table; it must exist.
   * @defaultValue the one that the connections use
   */
  readonly database?: string;
  /**
   * The prefix of the name of the table, `<tablePrefix>once_slots`: `A-Z a-z 0-9 _ $`, at most 48 characters. The table is made by the
   * first `read`, unless it exists, or by `prepare()` of locks in the same database with the same prefix.
   * @defaultValue `'locks_'`
   */
  readonly tablePrefix?: string;
}

// setup: import { createLocks } from '@locks/core'; import { mysqlBackend, mysqlSlots } from '@locks/mysql'; import { day, once } from '@locks/once'; import mysql from 'mysql2/promise';
// setup: const pool = mysql.createPool('mysql://app@db/shop'); declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a row for each name in the table `locks_once_slots`. The
 * locks may be in another store.
 *
 * @param pool - what `createPool()` of mysql2 or mysql2/promise gives
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad pool or option; its functions throw errors of mysql2 as they are, one with the
 * code `NO_ANSWER` after 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(mysqlBackend(pool));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: mysqlSlots(pool) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function mysqlSlots(pool: CallbackPool | PromisePool, options?: MysqlSlotsOptions): SlotStore {
  const table = new FencedTable('mysqlSlots()', 'once_slots', pool, options);
  return {
    async read(name) {
      // The entry is joined to the time, so that the time is told where there is no entry. `NOW()` would be in the session's time zone.
      const sql =
        'SELECT clock.ms, slot, state, token, label, at, version, @@autocommit ' +
        "FROM (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS ms) AS clock " +
        `LEFT JOIN ${table.name} ON job = ${text(name)} LIMIT 1`;
      const rows = await table.read(sql, ONCE_SLOTS_COLUMNS);
      const cells = rows[0]?.map((cell: Buffer | null) => cell?.toString()) ?? [];
      const [now, slot, state, token, label, at, version] = cells;
      const storeTime = Number(now);
      if (slot === undefined) return { entry: undefined, storeTime };
      refuseNewerSlotEntry(Number(version));
      const [holder, writtenAt] = [BigInt(token as string), Number(at)];
      const entry = {
        slot,
        state: state as SlotEntry['state'],
        token: holder,
        label: label as string,
        at: writtenAt,
      };
      return { entry, storeTime };
    },
    async write(name, { slot, state, token, label, at }) {
      const row = {
        job: text(name),
        slot: text(slot),
        state: text(state),
        label: text(label),
        at: `${Math.trunc(at)}`,
      };
      return await table.put(row, token);
    },
  };
}

function text(value: string): string {
  return sqlText(value, 'mysqlSlots(): a name or a slot');
}
