import { PGlite } from '@electric-sql/pglite';
import { startPostgres } from '@locks/test-servers';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { countTogether } from '../src/drivers/pglite.ts';
import { sell } from '../src/drivers/postgres-js.ts';

it('sells each piece once, in transactions of postgres.js', async () => {
  await using server = await startPostgres();
  const sql = postgres(server.url, { onnotice: () => undefined });
  await sql`CREATE TABLE stock (sku integer PRIMARY KEY, quantity integer NOT NULL, fencing_token bigint)`;
  await sql`INSERT INTO stock VALUES (42, 10)`;
  const left = await Promise.all(Array.from({ length: 10 }, () => sell(sql, 42)));
  expect(left.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await sql.end();
});

it('loses no update of two parts that share a PGlite', async () => {
  const db = new PGlite();
  expect(await countTogether(db, 20)).toBe(20);
  await db.close();
});
