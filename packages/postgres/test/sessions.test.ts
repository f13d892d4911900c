import { createLocks } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresAdvisoryBackend } from '../src/index.ts';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
/** One for all settings, which is made with all of them at once: that takes longer than the steps. */
let schema: string;
/** What the role or the pool of a user may have set. */
const settings = [
  'array_nulls=off',
  'extra_float_digits=-15',
  'bytea_output=escape',
  'standard_conforming_strings=off',
  'backslash_quote=off',
  'IntervalStyle=sql_standard',
  'DateStyle=German',
  'TimeZone=Pacific/Chatham',
  'transform_null_equals=on',
  'row_security=off',
  'default_transaction_deferrable=on',
  'idle_in_transaction_session_timeout=500',
  'session_replication_role=replica',
  'plan_cache_mode=force_generic_plan',
  'quote_all_identifiers=on',
  'search_path=',
];

beforeAll(async () => {
  fixture = await LeaseFixture.start();
  schema = fixture.schema();
  const pool = fixture.pool({ options: settings.map((setting) => `-c ${setting}`).join(' ') });
  await fixture
    .locks({ schema, pool })
    .lock('warm')
    .run(() => undefined);
});
afterAll(() => fixture[Symbol.asyncDispose]());

describe.concurrent.each(settings)('on connections with %s', (setting) => {
  it('all steps of leases work', async () => {
    const odd = fixture.locks(
      { schema, pool: fixture.pool({ options: `-c ${setting}` }) },
      { ttlMs: 14_000 },
    );
    const plain = fixture.locks({ schema });
    const name = `it's "quoted" \\ é \0 ${setting}`;
    const first = await odd.lock(name, { label: `it's \\ "odd"` }).acquire();
    expect((await plain.lock(name).inspect()).holders).toMatchObject([{ label: `it's \\ "odd"` }]);
    const waits = [1, 2].map(() => odd.lock(name).acquire({ maxWaiters: 9 }));
    await waitUntil(async () => (await plain.lock(name).inspect()).waiters.length === 2, {
      what: 'two waiters',
    });
    const { holders, waiters } = await odd.lock(name).inspect();
    expect(waiters).toHaveLength(2);
    expect(Math.abs((holders[0]?.expiresInMs ?? 0) - first.validForMs)).toBeLessThan(1_000);
    await first.renew();
    await first.release();
    for (const wait of waits) await (await wait).release();
    const shares = await Promise.all([1, 2, 3].map(() => odd.semaphore(`permits ${setting}`, 3).acquire()));
    await Promise.all(shares.map((share) => share.release()));
    const read = await odd.readWriteLock(`shared ${setting}`).write.acquire();
    await read.downgrade();
    await read.release();
    await (await odd.all([odd.lock(`a ${setting}`), odd.lock(`b ${setting}`)]).acquire()).release();
    const names: string[] = [];
    for await (const { name } of odd.list()) if (name.endsWith(setting)) names.push(name);
    expect(names).toEqual([]);
  });
});

it('on connections with a time limit of transactions a wait for an advisory lock goes on', async () => {
  const [{ version } = {}] = await fixture.server.query(
    "SELECT current_setting('server_version_num') AS version",
  );
  const setting = Number(version) >= 170_000 ? 'transaction_timeout' : 'statement_timeout';
  const odd = createLocks(postgresAdvisoryBackend(fixture.pool({ options: `-c ${setting}=300` })));
  const lease = await odd.lock('a').acquire();
  const waiting = odd.lock('a').acquire({ waitMs: 20_000 });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await lease.release();
  await (await waiting).release();
  await odd.close();
});
