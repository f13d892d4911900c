import { createLocks, type LockManager } from '@locks/core';
import { expect, onTestFinished, test } from 'vitest';
import { createRecordBackend } from '../src/create-record-backend.ts';
import { acquire, call, open, request, take } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

const KEY = 'locks/lock/bad';
const head = { write: 1, layout: 1, token: 2, at: 3, name: 'bad', before: [] };
const hold = { id: 'x', mode: 'exclusive', token: 2, mark: 1, span: 9 };
const line = (record: unknown, state: unknown = ''): string =>
  `${JSON.stringify(record)}\n${state === '' ? '' : JSON.stringify(state)}`;

const FOREIGN: readonly (readonly [what: string, text: string])[] = [
  ['nothing', ''],
  ['text', 'a string of the application'],
  ['JSON of something else', '{"a":1}'],
  ['null', 'null\nnull'],
  ['a heartbeat', '{"beat":12}'],
  ['a head without a name', line({ ...head, name: undefined })],
  ['a head without a layout', line({ ...head, layout: undefined })],
  ['another name', line({ ...head, name: 'other' })],
  ['a token that is no number', line({ ...head, token: 'high' })],
  [
    'a token that cannot be told from the next',
    '{"write":1,"layout":1,"token":9007199254740993,"at":3,"name":"bad","before":[]}\n',
  ],
  ['a negative token', line({ ...head, token: -1 })],
  ['a state that is no object', line(head, 7)],
  ['a state without waiters', line(head, { holds: [] })],
  ['a hold without an id', line(head, { holds: [{ ...hold, id: undefined }], waiters: [] })],
  ['a hold of no mode', line(head, { holds: [{ ...hold, mode: 'half' }], waiters: [] })],
  ['a hold that is null', line(head, { holds: [null], waiters: [] })],
  ['a hold with a label that is a number', line(head, { holds: [{ ...hold, label: 1 }], waiters: [] })],
  ['a waiter without ids', line(head, { holds: [], waiters: [{ mode: 'shared', by: 'c', ttl: 5 }] })],
  ['half of a record', line(head, { holds: [hold], waiters: [] }).slice(0, -9)],
];

function plant(records: Records, text: string): void {
  records.byKey.set(KEY, { value: Buffer.from(text), version: 'planted' });
}

function locksOn(records: Records): LockManager {
  const locks = createLocks(createRecordBackend(new MemoryStore(records)));
  onTestFinished(() => locks.close());
  return locks;
}

async function namesOf(locks: LockManager): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of locks.list()) names.push(name);
  return names;
}

test.each(FOREIGN)('%s in the place of a record fails its own name, and says so', async (_, text) => {
  const records = new Records();
  const locks = locksOn(records);
  const good = await locks.lock('good').acquire();
  plant(records, text);
  const failure = { code: 'LOCK_BACKEND', lockName: 'bad', cause: { code: 'MALFORMED_RECORD' } };
  const failures = [
    locks.lock('bad').acquire({ waitMs: 5_000 }),
    locks.lock('bad').tryAcquire(),
    locks.inspect('bad'),
    locks.forceRelease('bad'),
  ];
  for (const failed of failures) {
    const error = await failed.then(
      () => expect.fail('it did not fail'),
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject(failure);
    expect((error as Error).message).toContain(KEY);
  }
  expect(await namesOf(locks)).toEqual(['good']);
  expect(Buffer.from(records.byKey.get(KEY)?.value ?? []).toString()).toBe(text);
  await good.renew();
  await good.release();
  records.byKey.delete(KEY);
  await (await locks.lock('bad').acquire()).release();
});

test.each([
  ['newer', 2, 'NEWER_SCHEMA', 'Upgrade this process'],
  ['older', 0, 'OLDER_SCHEMA', 'Stop all processes of the older version, then delete the record'],
])('a record of a %s layout is refused at once, and nothing is written', async (_, layout, code, toDo) => {
  const records = new Records();
  const locks = locksOn(records);
  // What else such a record says, this version cannot know.
  const text = '{"write":1,"layout":' + `${layout},"state":"of another kind"}\n`;
  plant(records, text);
  const refusal = { code: 'LOCK_BACKEND', lockName: 'bad', cause: { name: 'StoreLayoutError', code } };
  const failures = [
    locks.lock('bad').acquire({ waitMs: 5_000 }),
    locks.lock('bad').tryAcquire(),
    locks.inspect('bad'),
    locks.forceRelease('bad'),
  ];
  for (const failed of failures) {
    const error: unknown = await failed.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(refusal);
    expect((error as Error).message).toContain(toDo);
    expect((error as Error).message).toContain(KEY);
  }
  expect([...records.byKey.keys()]).toEqual([KEY]);
  expect(Buffer.from(records.byKey.get(KEY)?.value ?? []).toString()).toBe(text);
  records.byKey.delete(KEY);
  const lease = await locks.lock('bad').acquire();
  expect(Buffer.from(records.byKey.get(KEY)?.value ?? []).toString()).toMatch(/^{"write":\d+,"layout":1,/);
  await lease.release();
});

test('a record that turns bad ends the wait for it, and neither the renewals nor the waits of other names', async () => {
  const records = new Records();
  const [mine, other] = [open(new MemoryStore(records)), open(new MemoryStore(records))];
  const [bad, good] = [await take(other, request('bad')), await take(other, request('good'))];
  const waiting = acquire(mine, request('bad'));
  const alsoWaiting = acquire(mine, request('good'));
  const failed = expect(waiting).rejects.toMatchObject({ code: 'MALFORMED_RECORD' });
  plant(records, 'something else');
  await failed;
  expect(
    await other.renew(
      [bad, good].map((grant) => ({ grant, ttlMs: 10_000 })),
      call,
    ),
  ).toMatchObject([{ status: 'unknown', error: { code: 'MALFORMED_RECORD' } }, { status: 'held' }]);
  await other.release(good, call);
  await mine.release(await alsoWaiting, call);
});

test('a heartbeat that something else has written is judged by its silence', async () => {
  const records = new Records();
  const pace = { waiterTtlMs: 400 };
  const [mine, dying] = [open(new MemoryStore(records, { pace })), new MemoryStore(records, { pace })];
  const held = await take(mine, request('a'));
  const gone = createRecordBackend(dying);
  expect(await gone.attempt(request('a'), true, call)).toEqual({ status: 'contended' });
  const [heartbeat] = [...records.byKey.keys()].filter((key) => key.startsWith('locks/client/'));
  records.byKey.set(heartbeat ?? '', { value: Buffer.from('not JSON'), version: 'planted' });
  const next = acquire(mine, request('a'));
  await mine.release(held, call);
  await mine.release(await next, call);
});
