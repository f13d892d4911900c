import { expect, it } from 'vitest';
import { acquire, call, freshPrefix, open, request, sql, take, until, useServer } from './fixture.ts';

useServer();

/** What the statements of this package call. */
const called = [
  'COALESCE',
  'CONCAT',
  'DATABASE',
  'GET_LOCK',
  'GREATEST',
  'LAST_INSERT_ID',
  'LEFT',
  'RELEASE_LOCK',
  'SHA1',
  'TIMESTAMPDIFF',
  'UTC_TIMESTAMP',
];

it('stored functions with the names of those that it calls are not called', async () => {
  const made: string[] = [];
  for (const name of called) {
    await sql(`CREATE FUNCTION \`${name}\` (a TEXT) RETURNS INT DETERMINISTIC RETURN 7`)
      .then(() => made.push(name))
      .catch(() => undefined);
  }
  expect(made.length).toBeGreaterThan(5);
  try {
    const backend = open({ tablePrefix: freshPrefix() });
    const first = await take(backend, request('a'));
    const second = await take(backend, request('b'));
    expect(second.fencingToken as bigint).toBeGreaterThan(1_000_000_000_000n);
    const waiting = acquire(backend, request('a'));
    await until(async () => (await backend.inspect('a', call)).waiters.length === 1);
    await backend.release(first, call);
    expect((await waiting).fencingToken as bigint).toBeGreaterThan(first.fencingToken as bigint);
    expect(await backend.renew([{ grant: second, ttlMs: 20_000 }], call)).toMatchObject([{ status: 'held' }]);
  } finally {
    for (const name of made) await sql(`DROP FUNCTION \`${name}\``);
  }
});
