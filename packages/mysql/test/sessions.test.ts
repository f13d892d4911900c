import type { LockMode } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import {
  acquire,
  call,
  freshPrefix,
  open,
  openPool,
  request,
  sql,
  take,
  until,
  useServer,
} from './fixture.ts';

useServer();

/** What a user's pool may have set on its connections. */
const settings = [
  "SET time_zone = '+13:00'",
  "SET time_zone = '-11:00', sql_mode = ''",
  "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
  "SET sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,ONLY_FULL_GROUP_BY,PIPES_AS_CONCAT,IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION'",
  'SET autocommit = 0',
  "SET autocommit = 0, tx_isolation = 'SERIALIZABLE'",
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
  'SET NAMES latin1, character_set_results = NULL',
  'SET sql_select_limit = 1',
  'SET sql_select_limit = 0',
  'SET sql_big_selects = 0, max_join_size = 1',
  'SET sql_safe_updates = 1',
];

describe.each(settings)('on connections with %s', (onConnect) => {
  it('all of the protocol works, and nothing is left in a transaction', async () => {
    const tablePrefix = freshPrefix();
    const odd = open({ tablePrefix, pool: openPool({ connectionLimit: 3 }, onConnect) });
    const plain = open({ tablePrefix });
    const name = 'ünïcode \\ \' " ` \0 %_ 💡';
    const first = await take(odd, request(name, { label: 'it\'s \\ "quoted"' }));
    // Committed: others see it.
    expect((await plain.inspect(name, call)).holders).toMatchObject([{ label: 'it\'s \\ "quoted"' }]);
    expect((await plain.attempt(request(name), false, call)).status).toBe('contended');
    const waiting = acquire(plain, request(name));
    await until(async () => (await odd.inspect(name, call)).waiters.length === 1);
    expect(await odd.renew([{ grant: first, ttlMs: 9_000 }], call)).toEqual([{ status: 'held' }]);
    expect(await odd.release(first, call)).toBe('released');
    const second = await waiting;
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    const back = acquire(odd, request(name));
    await until(async () => (await plain.inspect(name, call)).waiters.length === 1);
    expect(await plain.release(second, call)).toBe('released');
    const third = await back;
    const { holders } = await plain.inspect(name, call);
    expect(holders[0]?.expiresInMs).toBeGreaterThan(7_000);
    expect(holders[0]?.expiresInMs).toBeLessThanOrEqual(10_000);
    expect(await odd.forceRelease?.(name, undefined, call)).toHaveLength(1);
    expect(await odd.renew([{ grant: third, ttlMs: 9_000 }], call)).toMatchObject([{ status: 'lost' }]);
    // All or none, also where errors are made into warnings as far as possible.
    const held = await take(plain, request('b'));
    expect(await odd.attemptMany?.([request('a'), request('b'), request('c')], call)).toBeUndefined();
    expect((await plain.inspect('a', call)).holders).toEqual([]);
    await plain.release(held, call);
    expect(await odd.attemptMany?.([request('a'), request('b'), request('c')], call)).toHaveLength(3);
    const names: string[] = [];
    for await (const { name } of odd.list?.('', call) ?? []) names.push(name);
    expect(names).toEqual(['a', 'b', 'c']);
    const open_ = await sql(
      "SELECT COUNT(*) AS n FROM information_schema.innodb_trx WHERE trx_state = 'RUNNING'",
    );
    expect(open_).toEqual([{ n: 0 }]);
  });
});

it.each([true, '_'])('works on a pool with nestTables: %j', async (nestTables) => {
  const backend = open({ tablePrefix: freshPrefix(), pool: openPool({ nestTables }) });
  const grant = await take(backend, request('a'));
  const waiting = acquire(backend, request('a'));
  await until(async () => (await backend.inspect('a', call)).waiters.length === 1);
  expect(await backend.release(grant, call)).toBe('released');
  expect(await backend.release(await waiting, call)).toBe('released');
});

it('reads what is new on connections without autocommit, each time', async () => {
  const tablePrefix = freshPrefix();
  const odd = open({ tablePrefix, pool: openPool({ connectionLimit: 1 }, 'SET autocommit = 0') });
  const plain = open({ tablePrefix });
  expect((await odd.inspect('a', call)).holders).toEqual([]);
  const permit: LockMode = { kind: 'permit', limit: 2, weight: 1 };
  for (let count = 1; count <= 2; count += 1) {
    await take(plain, request('a', { mode: permit }));
    expect((await odd.inspect('a', call)).holders).toHaveLength(count);
  }
});

it('keeps no rows locked after a statement that failed on a connection without autocommit', async () => {
  const tablePrefix = freshPrefix();
  const odd = open({ tablePrefix, pool: openPool({ connectionLimit: 1 }, 'SET autocommit = 0') });
  await odd.release(await take(odd, request('a')), call);
  const blocker = openPool({ connectionLimit: 1 }, 'SET autocommit = 0').promise();
  await blocker.query(`SELECT * FROM ${tablePrefix}locks FOR UPDATE`);
  const attempt = odd.attempt(request('a'), false, call);
  const refused = expect(attempt).rejects.toMatchObject({ errno: 1317 });
  const [waiting] = await until(async () => {
    const found = await sql(
      `SELECT id FROM information_schema.processlist WHERE info LIKE 'INSERT INTO%${tablePrefix}locks%'`,
    );
    return found.length > 0 ? found : undefined;
  });
  await sql(`KILL QUERY ${String(waiting?.['id'])}`);
  await refused;
  // Of the statement that was undone: what it had read for itself.
  expect(await sql(`SELECT item FROM locks.${tablePrefix}meta FOR UPDATE NOWAIT`)).toHaveLength(3);
  await blocker.query('ROLLBACK');
});

it('works on one connection, with twenty locks wanted at once', async () => {
  const backend = open({ tablePrefix: freshPrefix(), pool: openPool({ connectionLimit: 1 }) });
  const grants = await Promise.all(
    Array.from({ length: 20 }, (_, index) => take(backend, request(`lock ${index}`))),
  );
  expect(
    await backend.renew(
      grants.map((grant) => ({ grant, ttlMs: 5_000 })),
      call,
    ),
  ).toEqual(grants.map(() => ({ status: 'held' })));
  const waits = grants.map(({ request: { resource } }) => acquire(backend, request(resource)));
  await Promise.all(grants.map((grant) => backend.release(grant, call)));
  const next = await Promise.all(waits);
  await Promise.all(next.map((grant) => backend.release(grant, call)));
});
