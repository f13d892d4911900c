/** The recipes of docs/once-per-slot.md for every store, on the server of a harness. */
import { type OnceRecord, type SlotEntry, textRecord } from '@locks/once';
import { fencedSet } from '@locks/redis-ioredis';
import { sqliteRecord } from '@locks/sqlite';
import { Redis } from 'ioredis';
import { createPool, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import pg from 'pg';
import type { PostgresAddress } from '../harnesses/postgres/deployment.ts';
import type { RedisAddress } from '../harnesses/redis/address.ts';
import type { RecordKind } from './commands.ts';

interface Row {
  readonly slot: string;
  readonly state: SlotEntry['state'];
  readonly token: string;
  readonly label: string;
  readonly at: string;
}

const TABLE = `CREATE TABLE IF NOT EXISTS once_slots (
  job varchar(255) PRIMARY KEY, slot varchar(255) NOT NULL, state varchar(5) NOT NULL,
  token bigint NOT NULL, label varchar(255) NOT NULL, at bigint NOT NULL)`;

/** One process makes its record before others do: `CREATE TABLE IF NOT EXISTS` of two sessions may collide. */
export const recordOf: Readonly<Record<RecordKind, () => Promise<OnceRecord>>> = {
  async 'redis-ioredis'() {
    const { url } = JSON.parse(process.env['LOCKS_CONFORMANCE_REDIS'] ?? '') as RedisAddress & {
      url: string;
    };
    const redis = new Redis(url);
    return textRecord({
      get: (key) => redis.get(key),
      set: (key, value, token) => fencedSet(redis, key, value, token),
    });
  },

  async 'postgres-lease'() {
    const { url } = JSON.parse(process.env['LOCKS_CONFORMANCE_POSTGRES'] ?? '') as PostgresAddress;
    const db = new pg.Pool({ connectionString: url, max: 2, allowExitOnIdle: true });
    await db.query(TABLE);
    return {
      async read(job) {
        const { rows } = await db.query<Row>('SELECT * FROM once_slots WHERE job = $1', [job]);
        return entryOf(rows[0]);
      },
      async write(job, { slot, state, token, label, at }) {
        const { rowCount } = await db.query(
          `INSERT INTO once_slots (job, slot, state, token, label, at) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
             label = excluded.label, at = excluded.at
           WHERE once_slots.token <= excluded.token`,
          [job, slot, state, token, label, at],
        );
        return rowCount === 1;
      },
    };
  },

  async mysql() {
    const uri = JSON.parse(process.env['LOCKS_CONFORMANCE_MYSQL'] ?? '') as string;
    const db = createPool({ uri, connectionLimit: 2, supportBigNumbers: true, bigNumberStrings: true });
    await db.query(TABLE);
    return {
      async read(job) {
        const [rows] = await db.query<RowDataPacket[]>('SELECT * FROM once_slots WHERE job = ?', [job]);
        return entryOf(rows[0] as Row | undefined);
      },
      async write(job, { slot, state, token, label, at }) {
        // A first row that any token may replace.
        await db.query(
          "INSERT IGNORE INTO once_slots (job, slot, state, token, label, at) VALUES (?, '-', 'done', 0, '', 0)",
          [job],
        );
        const [{ affectedRows }] = await db.query<ResultSetHeader>(
          'UPDATE once_slots SET slot = ?, state = ?, token = ?, label = ?, at = ? WHERE job = ? AND token <= ?',
          [slot, state, `${token}`, label, at, job, `${token}`],
        );
        // `mysql2` counts the rows that were found, also where nothing changed.
        return affectedRows === 1;
      },
    };
  },

  async sqlite() {
    return sqliteRecord({ path: `${process.env['LOCKS_SQLITE_PATH']}.record` });
  },
};

/** Both libraries give big numbers as text. */
function entryOf(row: Row | undefined): SlotEntry | undefined {
  return row && { ...row, token: BigInt(row.token), at: Number(row.at) };
}
