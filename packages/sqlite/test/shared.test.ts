import { expect, test } from 'vitest';
import { call, open, queue, request, rowsIn, shared, take, until } from './fixture.ts';
import { RemoteProcess } from './remote-process.ts';

test('shares live beside each other, each with its own token, end and release', async () => {
  const { backend } = open();
  const long = await take(backend, shared('a', 10_000));
  const short = await take(backend, shared('a', 30));
  const third = await take(backend, shared('a', 10_000));
  expect(short.fencingToken).toBeGreaterThan(long.fencingToken ?? 0n);
  expect(third.fencingToken).toBeGreaterThan(short.fencingToken ?? 0n);
  // The short one ends by itself, whatever the others do.
  expect(await backend.renew([{ grant: long, ttlMs: 20_000 }], call)).toEqual([{ status: 'held' }]);
  await until(async () => (await backend.inspect('a', call)).holders.length === 2);
  expect(await backend.renew([{ grant: short, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'expired' },
  ]);
  expect(await backend.release(short, call)).toBe('not-held');
  expect((await backend.attempt(request('a'), false, call)).status).toBe('contended');
  expect(await backend.release(long, call)).toBe('released');
  expect((await backend.attempt(request('a'), false, call)).status).toBe('contended');
  expect(await backend.release(third, call)).toBe('released');
  await take(backend, request('a'));
});

test('an attempt repeated with the id of one share among many gives its own token and end', async () => {
  const { backend } = open();
  await take(backend, shared('a', 5_000));
  const wanted = shared('a', 20_000);
  const first = await take(backend, wanted);
  await take(backend, shared('a', 10_000));
  const again = await take(backend, wanted);
  expect(again.fencingToken).toBe(first.fencingToken);
  expect(again.validForMs).toBeGreaterThan(10_000);
  expect((await backend.inspect('a', call)).holders).toHaveLength(3);
});

test('an attempt repeated with the id of an expired share is a new one', async () => {
  const { backend } = open();
  for (let n = 0; n < 2; n += 1) await take(backend, shared('a', 60_000));
  const wanted = shared('a', 30);
  const first = await take(backend, wanted);
  await until(async () => (await backend.inspect('a', call)).holders.length === 2);
  const again = await take(backend, wanted);
  expect(again.fencingToken).toBeGreaterThan(first.fencingToken ?? 0n);
  expect(again.validForMs ?? 30).toBeGreaterThan(0);
});

test('an expired share beside others does not block a writer once they have left too', async () => {
  const { backend, path } = open();
  await take(backend, shared('a', 20));
  const other = await take(backend, shared('a', 60_000));
  const writer = await queue(backend, request('a', 60_000));
  await until(async () => (await backend.inspect('a', call)).holders.length === 1);
  expect(writer.entered).toBe(false);
  await backend.release(other, call);
  await writer.granted;
  expect(rowsIn(path)).toMatchObject({ holds: 1, waiters: 0 });
});

test('a waiting writer holds back new readers, and a waiting reader later writers', async () => {
  const { backend } = open();
  const first = await take(backend, shared('a'));
  const writer = await queue(backend, request('a'));
  expect((await backend.attempt(shared('a'), false, call)).status).toBe('contended');
  const reader = await queue(backend, shared('a'));
  const late = await queue(backend, request('a'));
  await backend.release(first, call);
  const written = await writer.granted;
  expect(reader.entered).toBe(false);
  await backend.release(written, call);
  const read = await reader.granted;
  expect(late.entered).toBe(false);
  await backend.release(read, call);
  await late.granted;
});

test('readers side by side in the queue enter together, in the transaction that frees the resource', async () => {
  const { backend } = open();
  const writer = await take(backend, request('a'));
  const readers = await Promise.all(Array.from({ length: 5 }, () => queue(backend, shared('a'))));
  const next = await queue(backend, request('a'));
  const behind = await queue(backend, shared('a'));
  await backend.release(writer, call);
  const { holders, waiters } = await backend.inspect('a', call);
  expect(holders).toHaveLength(5);
  expect(waiters.map(({ mode }) => mode.kind)).toEqual(['exclusive', 'shared']);
  const grants = await Promise.all(readers.map(({ granted }) => granted));
  for (const grant of grants) await backend.release(grant, call);
  await backend.release(await next.granted, call);
  await behind.granted;
});

test('readers of several processes enter together', async () => {
  const { backend, path } = open();
  const remotes = [new RemoteProcess(path), new RemoteProcess(path)] as const;
  await Promise.all(remotes.map((remote) => remote.ready()));
  const writer = await take(backend, request('a'));
  const first = await remotes[0].wait('a', { kind: 'shared' });
  const here = await queue(backend, shared('a'));
  const last = await remotes[1].wait('a', { kind: 'shared' });
  await backend.release(writer, call);
  await Promise.all([first.granted, here.granted, last.granted]);
  expect((await backend.inspect('a', call)).holders).toHaveLength(3);
});

test('a reader does not wait for one before it whose process stands still', async () => {
  const { backend, path } = open();
  const remote = new RemoteProcess(path);
  await remote.ready();
  const writer = await take(backend, request('a', 60_000));
  await remote.wait('a', { kind: 'shared' });
  const here = await queue(backend, shared('a'));
  remote.child.kill('SIGSTOP');
  const before = performance.now();
  await backend.release(writer, call);
  await here.granted;
  expect(performance.now() - before).toBeLessThan(1_500);
});

test.for([
  ['SIGKILL', 4_000],
  ['SIGSTOP', 5_000],
] as const)(
  'a writer ended by %s in the queue does not hold back readers for longer than %i ms',
  async ([signal, boundMs]) => {
    const { backend, path } = open();
    const remote = new RemoteProcess(path);
    await take(backend, shared('a', 60_000));
    await remote.wait('a');
    const reader = await queue(backend, shared('a'));
    expect(reader.entered).toBe(false);
    remote.child.kill(signal);
    const before = performance.now();
    await reader.granted;
    expect(performance.now() - before).toBeLessThan(boundMs);
  },
);

test('an abandoned writer at the head of the queue frees the readers behind it', async () => {
  const { backend } = open();
  await take(backend, shared('a'));
  const gone = request('a');
  await backend.attempt(gone, true, call);
  const readers = [await queue(backend, shared('a')), await queue(backend, shared('a'))];
  await backend.abandon(gone, call);
  expect((await backend.inspect('a', call)).holders).toHaveLength(3);
  await Promise.all(readers.map(({ granted }) => granted));
});

test('a downgrade keeps token and end, serves the readers at the head, and no writer', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a', 10_000));
  const reader = await queue(backend, shared('a'));
  const writer = await queue(backend, request('a'));
  const late = await queue(backend, shared('a'));
  expect(await backend.downgrade(grant, call)).toEqual({ status: 'held' });
  const { holders, waiters } = await backend.inspect('a', call);
  expect(holders).toHaveLength(2); // the reader entered in the same transaction
  await reader.granted;
  expect(holders[0]).toMatchObject({ mode: { kind: 'shared' }, fencingToken: grant.fencingToken });
  expect(holders[0]?.expiresInMs).toBeLessThanOrEqual(10_000);
  expect(waiters).toHaveLength(2);
  expect(await backend.downgrade(grant, call)).toEqual({ status: 'held' });
  expect(writer.entered || late.entered).toBe(false);
  expect(await backend.renew([{ grant, ttlMs: 1_000 }], call)).toEqual([{ status: 'held' }]);
  expect(await backend.release(grant, call)).toBe('released');
});

test("a downgrade of an expired hold, or of another's, is lost", async () => {
  const { backend } = open();
  const grant = await take(backend, request('a', 20));
  await until(async () => (await backend.inspect('a', call)).holders.length === 0);
  expect(await backend.downgrade(grant, call)).toEqual({ status: 'lost', reason: 'expired' });
  await take(backend, request('a'));
  expect(await backend.downgrade(grant, call)).toEqual({ status: 'lost', reason: 'taken-over' });
  expect((await backend.inspect('a', call)).holders).toMatchObject([{ mode: { kind: 'exclusive' } }]);
});

test('a share that was released by force learns it, while others go on', async () => {
  const { backend } = open();
  const one = await take(backend, shared('a'));
  const two = await take(backend, shared('a'));
  expect(await backend.forceRelease('a', one.request.acquisitionId, call)).toHaveLength(1);
  expect(
    await backend.renew(
      [
        { grant: one, ttlMs: 1_000 },
        { grant: two, ttlMs: 1_000 },
      ],
      call,
    ),
  ).toEqual([{ status: 'lost', reason: 'force-released' }, { status: 'held' }]);
  await take(backend, shared('a'));
  expect(await backend.forceRelease('a', undefined, call)).toHaveLength(2);
  await take(backend, request('a'));
});
