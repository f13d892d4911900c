import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sqliteResults } from '../src/index.ts';
import { temporaryFolder, until } from './fixture.ts';

const freshPath = (): string => join(temporaryFolder(), 'locks.db');
/** Beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;

describe('sqliteResults', () => {
  it('keeps the newest result of each key until its end, for every process of the file', async () => {
    const path = freshPath();
    const [results, other] = [sqliteResults(path), sqliteResults(path)];
    expect(await results.get('prices')).toBeUndefined();
    await results.set('prices', 'é', TOKEN, 60_000);
    const late = other.set('prices', 'late', TOKEN - 1n, 60_000);
    await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(await other.get('prices')).toBe('é');
    expect(await results.get('rates')).toBeUndefined();
    await results.set('prices', 'brief', TOKEN, 50);
    await until(async () => (await results.get('prices')) === undefined);
    await expect(other.set('prices', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({
      code: 'LOCK_LOST',
    });
    await other.set('prices', 'newer', TOKEN + 1n, 60_000);
    expect(await results.get('prices')).toBe('newer');
  });

  it('removes results that ended an hour ago with later writes, and keeps the tokens of others', async () => {
    const path = freshPath();
    const results = sqliteResults(path);
    await results.get('a');
    const db = new DatabaseSync(path);
    const insert = db.prepare("INSERT INTO shared_results VALUES (?, 'x', 7, ?)");
    for (let old = 0; old < 15; old += 1) insert.run(`old ${old}`, Date.now() - 61 * 60_000);
    insert.run('ended', Date.now() - 59 * 60_000);
    for (const token of [1n, 2n]) await results.set('a', 'x', token, 60_000);
    const keys = db.prepare('SELECT key FROM shared_results ORDER BY key').all();
    db.close();
    expect(keys).toEqual([{ key: 'a' }, { key: 'ended' }]);
    await expect(results.set('ended', 'late', 6n, 60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it.each([[undefined], [''], [':memory:'], [{ path: 'x.db' }]])('refuses %j at once', (path) => {
    expect(() => sqliteResults(path as string)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
