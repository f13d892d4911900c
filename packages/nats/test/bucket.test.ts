import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeDirectory, waitUntil } from '@locks/test-servers';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { expect, it } from 'vitest';
import { connectionTo, limit, put, startedNats, storeOn, valueOf, versionOf } from './fixture.ts';

interface Config {
  readonly [name: string]: unknown;
}

async function api(
  connection: NatsConnection,
  call: string,
  body: object = {},
): Promise<{ config?: Config }> {
  return (await connection.request(`$JS.API.${call}`, JSON.stringify(body))).json();
}

const ofUser = {
  name: 'KV_locks',
  subjects: ['$KV.locks.>'],
  max_msgs_per_subject: 1,
  discard: 'new',
  max_age: 0,
};

it('the bucket is made at the first call, as the clients of NATS make one, for changes that are told after they were stored', async () => {
  const connection = await connectionTo((await startedNats()).url);
  const store = storeOn(connection, { bucket: 'jobs' });
  await versionOf(put(store, 'a', 'one'));
  const { config } = await api(connection, 'STREAM.INFO.KV_jobs');
  expect(config).toMatchObject({
    ...{
      storage: 'file',
      num_replicas: 1,
      max_msgs_per_subject: 1,
      max_age: 0,
      discard: 'new',
      allow_direct: false,
    },
    republish: { src: '$KV.jobs.>', dest: 'KV_CHANGED.jobs.>', headers_only: true },
  });
});

it('two that make it at once with different options share it', async () => {
  const { url } = await startedNats();
  const stores = await Promise.all(
    Array.from({ length: 8 }, async (_, index) =>
      storeOn(await connectionTo(url), index % 2 ? { replicas: 1 } : {}),
    ),
  );
  const outcomes = await Promise.all(stores.map((store, index) => put(store, 'a', String(index))));
  expect(outcomes.filter(({ status }) => status === 'written')).toHaveLength(1);
});

it('a bucket of yours may have direct reads and tell nothing: reads are right, and changes are told', async () => {
  const { url } = await startedNats();
  const connection = await connectionTo(url);
  await api(connection, 'STREAM.CREATE.KV_locks', { ...ofUser, allow_direct: true });
  const [store, writer] = [storeOn(connection), storeOn(await connectionTo(url))];
  const version = await versionOf(put(store, 'a', 'one'));
  expect(await valueOf(store, 'a')).toEqual(['one', version]);
  let told = 0;
  store.watch('a', () => (told += 1));
  await store.read(['a'], limit);
  const idle = await versionOf(put(writer, 'a', 'two', version, true));
  await waitUntil(() => told >= 2, { what: 'the change to be told, and told again' });
  // Without message ttls, as such a bucket is, records stay.
  expect(await versionOf(put(writer, 'a', undefined, idle))).toBeGreaterThan(idle);
  expect(await valueOf(store, 'a')).toBeUndefined();
});

it('the marks that a server leaves for what it deleted are no records', async () => {
  const connection = await connectionTo((await startedNats()).url);
  await api(connection, 'STREAM.CREATE.KV_locks', {
    ...{ ...ofUser, allow_msg_ttl: true, allow_rollup_hdrs: true },
    subject_delete_marker_ttl: 3_600e9,
  });
  const store = storeOn(connection);
  const given = headers();
  given.set('Nats-TTL', '1s');
  await connection.request('$KV.locks.a', 'soon gone', { headers: given, timeout: 2_000 });
  const lastOf = async () => {
    const answer = await api(connection, 'STREAM.MSG.GET.KV_locks', { last_by_subj: '$KV.locks.a' });
    return (answer as { message?: { seq: number } }).message?.seq;
  };
  await waitUntil(async () => (await lastOf()) === 2, { what: 'the mark' });
  expect(await valueOf(store, 'a')).toBeUndefined();
  expect(await versionOf(put(store, 'a', 'new'))).toBe(3);
});

it.each([
  ['by their age', { max_age: 3_600e9 }],
  ['in memory', { storage: 'memory' }],
  ['discard: old', { discard: 'old' }],
])('a bucket that loses records is refused: %s', async (words, config) => {
  const connection = await connectionTo((await startedNats()).url);
  await api(connection, 'STREAM.CREATE.KV_locks', { ...ofUser, ...config });
  const store = storeOn(connection);
  const refused = await put(store, 'a', 'one').catch((error: unknown) => error);
  expect(String(refused)).toContain(words);
  expect(String(refused)).toContain('nats kv add locks');
  expect(store.isRetryable(refused)).toBe(false);
});

it('a bucket that is missing and shall not be made is named', async () => {
  const store = storeOn(await connectionTo((await startedNats()).url), { autoPrepare: false });
  const refused = await store.read(['a'], limit).catch((error: unknown) => error);
  expect(String(refused)).toContain('there is no bucket locks');
  expect(store.isRetryable(refused)).toBe(false);
});

it('more replicas than servers: what to pass, the words of the server, and no repetition', async () => {
  const store = storeOn(await connectionTo((await startedNats()).url), { replicas: 3 });
  const refused = await store.read(['a'], limit).catch((error: unknown) => error);
  expect(String(refused)).toMatch(/with 3 replicas.*pass fewer replicas.*The server said/);
  expect(store.isRetryable(refused)).toBe(false);
});

it('a server without JetStream is named', async () => {
  const store = storeOn(await connectionTo((await startedNats({ jetStream: false })).url));
  const refused = await store.read(['a'], limit).catch((error: unknown) => error);
  expect(String(refused)).toContain('JetStream is not enabled');
  expect(store.isRetryable(refused)).toBe(false);
});

it('a user who may not make the bucket is told so; one with the rights of the page has all that locks need', async () => {
  const file = path.join(await makeDirectory('nats-users'), 'users.conf');
  const rights = `{
    publish: ["$KV.locks.>", "$JS.API.STREAM.INFO.KV_locks", "$JS.API.STREAM.MSG.GET.KV_locks"]
    subscribe: ["_INBOX.>", "KV_CHANGED.locks.>"]
  }`;
  await writeFile(
    file,
    `authorization { users: [ { user: admin, password: a }, { user: app, password: b, permissions: ${rights} } ] }`,
  );
  const { url } = await startedNats({ args: ['-c', file] });
  const app = await connectionTo(url, { user: 'app', pass: 'b' });
  const early = storeOn(app);
  const refused = await early.read(['a'], limit).catch((error: unknown) => error);
  expect(String(refused)).toContain('may not look for the bucket locks or make it');
  expect(String(refused)).toContain('nats kv add locks');
  expect(early.isRetryable(refused)).toBe(false);
  await expect(storeOn(app, { autoPrepare: false }).prepare()).rejects.toThrow(
    /Permissions Violation for Publish to .*STREAM\.CREATE\.KV_locks.*call prepare\(\) of the locks as a user with the right/i,
  );
  const admin = await connectionTo(url, { user: 'admin', pass: 'a' });
  const makers = Array.from({ length: 4 }, () => storeOn(admin, { autoPrepare: false }).prepare());
  await Promise.all(makers);
  // The bucket is there: preparing it again needs no right to make it.
  await storeOn(app, { autoPrepare: false }).prepare();

  const store = storeOn(app, { autoPrepare: false });
  let told = 0;
  store.watch('a', () => (told += 1));
  const version = await versionOf(put(store, 'a', 'one'));
  await waitUntil(() => told === 1, { what: 'the change to be told' });
  for await (const listed of store.list('', limit)) expect(listed.version).toBe(version);
  await versionOf(put(store, 'a', undefined, version));
});

it('a bucket that was deleted is made again', async () => {
  const connection = await connectionTo((await startedNats()).url);
  const store = storeOn(connection);
  await versionOf(put(store, 'a', 'one'));
  await api(connection, 'STREAM.DELETE.KV_locks');
  const failed = await put(store, 'a', 'two').catch((error: unknown) => error);
  expect(store.isRetryable(failed)).toBe(true);
  await versionOf(put(store, 'a', 'two'));
});
