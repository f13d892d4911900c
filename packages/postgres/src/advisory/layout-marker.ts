import { StoreLayoutError } from '@locks/core/backend';
import { ask } from '../driver/ask.ts';
import type { Connection } from '../driver/postgres-driver.ts';
import { THIS_DATABASE } from './pg-locks.ts';
import { SessionEndedError } from './session-statement.ts';

/** The number of the layout: which key a name has, and in which mode it is locked. A change that an older version would not understand raises it. */
const LAYOUT = 1;
/** The first number of the marker's key, "LOCK" in ASCII; the second one is the layout. The key of a name is a single number instead. */
const MARK = 0x4c4f434b;

const ALL_MARKS = `locktype OPERATOR(pg_catalog.=) 'advisory' AND objsubid OPERATOR(pg_catalog.=) 2::smallint
  AND classid OPERATOR(pg_catalog.=) ${MARK}::pg_catalog.oid AND database OPERATOR(pg_catalog.=) ${THIS_DATABASE}`;
const IS_OTHER = `objid OPERATOR(pg_catalog.<>) ${LAYOUT}::pg_catalog.oid`;

/** Marks the session. A process that another layout keeps out leaves no mark, which would keep that layout's next session out. */
const MARK_SESSION = `SELECT pg_catalog.pg_try_advisory_lock_shared(${MARK}, ${LAYOUT})
  WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_locks WHERE ${ALL_MARKS} AND ${IS_OTHER})`;
const READ_MARKS = `SELECT pg_catalog.max(objid) FILTER (WHERE ${IS_OTHER}),
  pg_catalog.bool_or(pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() AND granted)
  FROM pg_catalog.pg_locks WHERE ${ALL_MARKS}`;

/**
 * Marks a session with the layout of its locks, for as long as it lives.
 *
 * @throws StoreLayoutError while sessions of another layout live in the database
 */
export async function markLayout(connection: Connection): Promise<void> {
  await ask(connection, { text: MARK_SESSION });
  // Read after the own mark was set: of two layouts that come at once, one at least sees the other.
  const [[other, isMarked] = []] = await ask(connection, { text: READ_MARKS });
  if (other !== null && other !== undefined) {
    throw new StoreLayoutError('the advisory locks of this database', other, LAYOUT, {
      other: 'another database',
      reset: 'try again',
    });
  }
  if (isMarked === 't') return;
  throw new SessionEndedError(
    `the layout of the session could not be marked: another program has locked (${MARK}, ${LAYOUT}) alone, or the last session of another ` +
      'layout ends in this moment',
  );
}
