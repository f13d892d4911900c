import { type SlotStore, readOptions, refuseNewerSlotEntry, type SlotEntry } from '@locks/core/backend';
import { SCHEMA_TABLE } from '../lease/options.ts';
import { onceSlots } from '../lease/tables-of-once.ts';
import { makeTable } from './make-table.ts';
import { fromColumn, toColumn } from './nul-text.ts';
import { outsideRunnerOf } from '../transaction/outside-runner.ts';
import type { SqlClient } from '../transaction/sql-client.ts';

/** The options of `postgresSlots`. */
export interface PostgresSlotsOptions {
  /**
   * The schema of the table `once_slots`. Schema and table are made by the first `read`, unless they exist, or by `prepare()` of a
   * `postgresLeaseBackend` with the same schema.
   * @defaultValue `'locks'`
   */
  readonly schema?: string;
}

/** All columns as text, whatever parsers the application has set on its client. Without an entry all but the time are null. */
interface Row {
  readonly now: string;
  readonly slot: string | null;
  readonly state: SlotEntry['state'];
  readonly token: string;
  readonly label: string;
  readonly at: string;
  readonly version: string;
}

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { postgresLeaseBackend, postgresSlots } from '@locks/postgres'; import { Pool } from 'pg';
// setup: const pool = new Pool(); declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a row for each name in the table `once_slots`. The locks may
 * be in another store.
 *
 * @param client - a pool of `pg`, the `sql` of postgres.js, a PGlite, or a function `(text, values) => rows`
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client or option; its functions throw errors of the client as they are, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend(pool));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: postgresSlots(pool) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function postgresSlots(client: SqlClient, options?: PostgresSlotsOptions): SlotStore {
  const run = outsideRunnerOf('postgresSlots()', client);
  const { schema } = readOptions('postgresSlots()', options, SCHEMA_TABLE);
  const slots = onceSlots(schema);
  const table = slots.name;
  return {
    async read(name) {
      const read = (): ReturnType<typeof run> =>
        run(
          // The entry is joined to the time, so that the time is told where there is no entry.
          `SELECT clock.now::pg_catalog.text, slot, state, token::pg_catalog.text, label, at::pg_catalog.text, version::pg_catalog.text
         FROM (SELECT pg_catalog.floor(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000) AS now) AS clock
         LEFT JOIN ${table} ON job = $1`,
          [toColumn(name)],
        );
      const make = makeTable(run, schema, slots);
      const rows = await read().catch(async (error: unknown) => {
        await make(error);
        return read();
      });
      const { now, slot, state, token, label, at, version } = rows[0] as unknown as Row;
      const storeTime = Number(now);
      if (slot === null) return { entry: undefined, storeTime };
      refuseNewerSlotEntry(Number(version));
      const entry = {
        slot: fromColumn(slot),
        state,
        token: BigInt(token),
        label: fromColumn(label),
        at: Number(at),
      };
      return { entry, storeTime };
    },
    async write(name, { slot, state, token, label, at }) {
      // The number of rows is a column, since not every library tells it otherwise.
      const [row] = await run(
        `WITH written AS (
           INSERT INTO ${table} AS present (job, slot, state, token, label, at) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
             label = excluded.label, at = excluded.at
           WHERE present.token <= excluded.token RETURNING 1)
         SELECT pg_catalog.count(*)::pg_catalog.text AS written FROM written`,
        [toColumn(name), toColumn(slot), state, String(token), toColumn(label), String(at)],
      );
      return Number(row?.['written']) === 1;
    },
  };
}
