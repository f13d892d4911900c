import type { PGlite } from '@electric-sql/pglite';
import { createLocks } from '@locks/core';
import { postgresLeaseBackend } from '@locks/postgres/pglite';

/** Counts up under a lock, as two parts of an application that share one PGlite. */
export async function countTogether(db: PGlite, times: number): Promise<number> {
  const [one, other] = [createLocks(postgresLeaseBackend(db)), createLocks(postgresLeaseBackend(db))];
  let count = 0;
  const increment = async (): Promise<void> => {
    const before = count;
    await db.query('SELECT 1');
    count = before + 1;
  };
  const turns = Array.from({ length: times }, (_, turn) =>
    (turn % 2 ? one : other).lock('count').run(increment),
  );
  await Promise.all(turns);
  await Promise.all([one.close(), other.close()]);
  return count;
}
