import { startPostgres } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TextResult } from '../src/driver/postgres-driver.ts';
import { NamedStatement, type PlainValue } from '../src/pg/named-statement.ts';

let server: Awaited<ReturnType<typeof startPostgres>>;
let client: pg.Client;

beforeAll(async () => {
  server = await startPostgres();
  client = new pg.Client({ connectionString: server.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await server.stop();
});

function run(name: string, text: string, values: readonly PlainValue[]): Promise<TextResult> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, answered?: TextResult): void =>
      answered === undefined ? reject(error) : resolve(answered);
    client.query(new NamedStatement(name, text, values, done));
  });
}

it('sends values of every kind and length, the first time and prepared', async () => {
  const text = `SELECT $1::text, encode($2::bytea, 'hex'), $3::int8, $4::text, $5::int4, $6::text`;
  for (const label of ['ä€😀', '', 'x'.repeat(70_000)]) {
    const values = [label, Buffer.from([0, 255, 39, 92]), 2n ** 62n, null, -1.0, undefined];
    const { rows, count } = await run('ünamed', text, values);
    expect(rows).toEqual([[label, '00ff275c', String(2n ** 62n), null, '-1', null]]);
    expect(count).toBe(1);
  }
});

it('counts the changed rows, also when there are none', async () => {
  await client.query('CREATE TEMPORARY TABLE counted AS SELECT generate_series(1, 3) AS n');
  const text = 'DELETE FROM counted WHERE n > $1';
  expect((await run('count', text, [1])).count).toBe(2);
  expect((await run('count', text, [1])).count).toBe(0);
});

it('reports errors of the server, while preparing and later, and the connection stays usable', async () => {
  await expect(run('no table', 'SELECT $1::text FROM nowhere', ['a'])).rejects.toMatchObject({
    code: '42P01',
  });
  await expect(run('number', 'SELECT $1::int4', ['a'])).rejects.toMatchObject({ code: '22P02' });
  expect((await run('number', 'SELECT $1::int4', [7])).rows).toEqual([['7']]);
});
