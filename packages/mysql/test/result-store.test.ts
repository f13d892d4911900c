import type { Pool } from 'mysql2';
import { describe, expect, it } from 'vitest';
import { mysqlResults } from '../src/index.ts';
import { freshPrefix, openPool, sql, until, useServer } from './fixture.ts';

useServer();

/** A token beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;

describe('mysqlResults', () => {
  it.each([
    ['as it is', undefined],
    ['without autocommit', 'SET autocommit = 0'],
    [
      'that is not strict',
      "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES', time_zone = '+05:00', NAMES latin1",
    ],
  ])('keeps the newest result of each key until its end, in a session %s', async (_, onConnect) => {
    const tablePrefix = freshPrefix();
    const results = mysqlResults(openPool({}, onConnect), { tablePrefix });
    const other = mysqlResults(openPool().promise(), { tablePrefix });
    expect(await results.get('prices')).toBeUndefined();
    await results.set('prices', "d'é\\", TOKEN, 60_000);
    const late = other.set('prices', 'late', TOKEN - 1n, 60_000);
    await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(await other.get('prices')).toBe("d'é\\");
    expect(await results.get('Prices')).toBeUndefined();
    await results.set('prices', 'brief', TOKEN, 50);
    await until(async () => (await results.get('prices')) === undefined);
    await expect(other.set('prices', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({
      code: 'LOCK_LOST',
    });
    await other.set('prices', 'newer', TOKEN + 1n, 60_000);
    expect(await results.get('prices')).toBe('newer');
  });

  it('removes results that ended an hour ago with later writes, and keeps the tokens of others', async () => {
    const tablePrefix = freshPrefix();
    const table = `locks.${tablePrefix}shared_results`;
    const results = mysqlResults(openPool(), { tablePrefix });
    await results.get('a');
    const now = 'TIMESTAMPDIFF(MICROSECOND, "1970-01-01", UTC_TIMESTAMP(3)) DIV 1000';
    for (let old = 0; old < 15; old += 1)
      await sql(`INSERT INTO ${table} VALUES ('old ${old}', 'x', 1, ${now} - 3660000)`);
    await sql(`INSERT INTO ${table} VALUES ('ended', 'x', 7, ${now} - 3540000)`);
    for (const token of [1n, 2n]) await results.set('a', 'x', token, 60_000);
    expect((await sql(`SELECT name FROM ${table} WHERE name LIKE 'old%'`)).length).toBe(0);
    await expect(results.set('ended', 'late', 6n, 60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it.each([[undefined], [{}], ['mysql://localhost'], [null]])('refuses the pool %j at once', (pool) => {
    expect(() => mysqlResults(pool as unknown as Pool)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
