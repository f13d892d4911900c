import { expect, test } from 'vitest';
import type { AcquireRequest, BackendCapabilities, LockBackend } from '../../src/backend/types.ts';
import { adopt, transfer, type TransferTicket } from '../../src/transfer/index.ts';
import { listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import {
  answerLater,
  capabilities as scripted,
  contended,
  granted,
  noAnswer,
  type ScriptedBackend,
  scriptedBackend,
} from '../scripted-backend.ts';

const capabilities: BackendCapabilities = {
  ...scripted,
  modes: ['exclusive', 'shared'],
  features: ['transfer'],
};
const TICKET: TransferTicket = {
  version: 1,
  name: 'a',
  acquisitionId: 'former'.padEnd(40, '-'),
  fencingToken: '7',
  ttlMs: 20_000,
};

function handingOver(script: Partial<LockBackend> = {}): ScriptedBackend {
  return scriptedBackend({ capabilities, ...script });
}

test('a lease that is transferred goes to an id that its ticket has, and is neither renewed, released nor lost here', async () => {
  useFakeClock();
  const asked: AcquireRequest[] = [];
  const backend = handingOver({
    attempt: async (request, _enqueue, call) => {
      asked.push(request);
      return granted(request, call);
    },
  });
  const [lost, released] = [listenTo('locks:lost'), listenTo('locks:released')];
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const { acquisitionId, fencingToken } = lease;
  const from = Date.now();
  const ticket = await transfer(lease, { ttlMs: 40_000 });
  expect(ticket).toEqual({
    version: 1,
    name: 'a',
    acquisitionId: expect.stringMatching(`^${acquisitionId}[\\w-]{20}$`),
    fencingToken: String((fencingToken ?? 0n) + 1n),
    ttlMs: 40_000,
    endsAt: from + 40_000,
  });
  expect(asked.at(-1)).toMatchObject({
    ...{ resource: 'a', acquisitionId: ticket.acquisitionId, adopts: acquisitionId, ttlMs: 40_000 },
  });
  expect([lease.validForMs, lease.holdCount]).toEqual([0, 0]);
  expect(() => lease.assertValid()).toThrow(/was transferred/);
  expect(await rejectionOf(lease.renew())).toBe('LOCK_NOT_HELD');
  await lease.release();
  await pass(120_000);
  expect(lease.signal.aborted).toBe(false);
  expect(backend.of('renew')).toEqual([]);
  expect(backend.of('release')).toEqual([]);
  expect(backend.of('abandon')).toEqual([]);
  expect(lost).toEqual([]);
  expect(released).toHaveLength(1);
});

/** A backend whose first attempt is granted, and whose others, which transfer, are answered as the test says. */
function thenAttempts(answer: LockBackend['attempt'], script: Partial<LockBackend> = {}): ScriptedBackend {
  let attempts = 0;
  return handingOver({
    ...script,
    attempt: (request, enqueue, call) => {
      attempts += 1;
      return attempts === 1 ? Promise.resolve(granted(request, call)) : answer(request, enqueue, call);
    },
  });
}

test('the process believes in the lease no longer than until it asks the store to transfer it', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = thenAttempts((request, _enqueue, call) => answer.then(() => granted(request, call)));
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const handed = transfer(lease);
  expect(lease.validForMs).toBe(0);
  expect(() => lease.assertValid()).toThrow(/was transferred/);
  // The time of a renewal: none is sent, which would find the id of the ticket and take that for a loss.
  await pass(500);
  give();
  await handed;
  await pass(60_000);
  expect(lease.signal.aborted).toBe(false);
  expect(backend.of('renew')).toEqual([]);
});

test('a run whose work transfers its lease releases nothing', async () => {
  const backend = handingOver();
  const { name } = await locksOn(backend)
    .lock('a')
    .run((lease) => transfer(lease));
  expect(name).toBe('a');
  expect(backend.of('release')).toEqual([]);
});

test('a transfer that the store does not answer gives no ticket: the lease is over, and both ids are abandoned', async () => {
  for (const attempt of [() => Promise.reject(new Error('away')), noAnswer<never>]) {
    const backend = thenAttempts(attempt, { releaseBudgetMs: 300 });
    const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
    expect(await rejectionOf(transfer(lease))).toBe('LOCK_BACKEND');
    const ids = backend.of('attempt').map((one) => one.ids[0]);
    // Sent again with the same id: the store may have carried out the first one.
    expect(new Set(ids).size).toBe(2);
    expect(ids.length).toBeGreaterThan(2);
    expect(backend.of('abandon').map((one) => one.ids[0])).toEqual([lease.acquisitionId, ids[1]]);
    expect(lease.validForMs).toBe(0);
    await lease.release();
    expect(backend.of('release')).toEqual([]);
  }
});

test('an abandon that fails after a transfer shows nobody the secret of the ticket', async () => {
  const failed = listenTo('locks:abandon-failed');
  const away = () => Promise.reject(new Error('away'));
  const backend = thenAttempts(away, { releaseBudgetMs: 100, abandon: away });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  expect(await rejectionOf(transfer(lease))).toBe('LOCK_BACKEND');
  await expect.poll(() => failed.length).toBe(2);
  const shown = { acquisitionId: lease.acquisitionId };
  expect(failed).toMatchObject([shown, shown]);
});

test('a transfer whose reply was lost is sent again, and gives its ticket', async () => {
  const asked: AcquireRequest[] = [];
  const backend = thenAttempts(async (request, _enqueue, call) => {
    asked.push(request);
    if (asked.length === 1) throw new Error('the reply was lost');
    return granted(request, call);
  });
  const ticket = await transfer(await locksOn(backend).lock('a').acquire());
  expect(asked.map(({ acquisitionId }) => acquisitionId)).toEqual([
    ticket.acquisitionId,
    ticket.acquisitionId,
  ]);
  expect(backend.of('abandon')).toEqual([]);
});

test('a transfer that finds the lease gone reports the loss', async () => {
  const lost = listenTo('locks:lost');
  const lease = await locksOn(thenAttempts(() => Promise.resolve(contended)))
    .lock('a')
    .acquire();
  const { signal } = lease;
  await expect(transfer(lease)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'force-released' });
  expect(signal.aborted).toBe(true);
  expect(lost).toHaveLength(1);
});

test('of a transfer, another one and a release at once, the first to begin wins', async () => {
  const { answer, give } = answerLater<void>();
  const backend = handingOver({
    attempt: async (request, _enqueue, call) => {
      if (request.adopts !== undefined) await answer;
      return granted(request, call);
    },
  });
  const locks = locksOn(backend);
  const [one, other] = [await locks.lock('a').acquire(), await locks.lock('b').acquire()];
  const both = [transfer(one), transfer(one)].map(rejectionOf);
  await one.release();
  await other.release();
  const late = rejectionOf(transfer(other));
  give();
  expect(await Promise.all(both)).toEqual(['fulfilled', 'LOCK_NOT_HELD']);
  expect(await late).toBe('LOCK_NOT_HELD');
  expect(backend.of('release').map(({ ids }) => ids)).toEqual([[other.acquisitionId]]);
});

test('a lease is refused that others have a part in, that is shared, that is over, or that is none', async () => {
  const locks = locksOn(handingOver());
  const lease = await locks.lock('a').acquire();
  const child = await locks.lock('a').acquire({ within: lease });
  expect(await rejectionOf(transfer(lease))).toBe('LOCK_REENTRANT');
  await child.release();
  const reader = await locks.readWriteLock('b').read.acquire();
  expect(await rejectionOf(transfer(reader))).toBe('LOCK_UNSUPPORTED');
  for (const [wrong, options] of [
    [null],
    [{}],
    [lease, { ttl: 5 }],
    [lease, { ttlMs: 1 }],
    [lease, null],
    [lease, { ttlMs: '5' }],
  ] as [never, never][])
    expect(await rejectionOf(transfer(wrong, options))).toBe('LOCK_INVALID_ARGUMENT');
  await lease.release();
  expect(await rejectionOf(transfer(lease))).toBe('LOCK_NOT_HELD');
  const plain = locksOn(scriptedBackend());
  expect(await rejectionOf(transfer(await plain.lock('a').acquire()))).toBe('LOCK_UNSUPPORTED');
  expect(await rejectionOf(adopt(plain, TICKET))).toBe('LOCK_UNSUPPORTED');
});

test('an adoption asks for the hold of the ticket, never in the queue, with the options of an acquire', async () => {
  const asked: [AcquireRequest, boolean][] = [];
  const backend = handingOver({
    attempt: (request, enqueue, call) => {
      asked.push([request, enqueue]);
      return Promise.resolve(granted(request, call));
    },
  });
  const locks = locksOn(backend, { ttlMs: 50_000, label: 'manager' });
  const lease = await adopt(locks, TICKET);
  expect(asked[0]).toMatchObject([
    { resource: 'a', adopts: TICKET.acquisitionId, ttlMs: 20_000, label: 'manager' },
    false,
  ]);
  expect(lease.acquisitionId).not.toBe('former');
  await adopt(
    locks,
    { ...TICKET, name: 'b' },
    { ttlMs: 5_000, label: 'worker', renewal: 'manual', waitMs: 0 },
  );
  expect(asked[1]).toMatchObject([{ resource: 'b', ttlMs: 5_000, label: 'worker' }, false]);
});

test('an adoption that the store refuses is no wait, and leaves nothing behind', async () => {
  const backend = handingOver({ attempt: () => Promise.resolve(contended), awaitTurn: noAnswer });
  const adoption = adopt(locksOn(backend), TICKET, { waitMs: Number.POSITIVE_INFINITY });
  await expect(adoption).rejects.toMatchObject({ code: 'LOCK_NOT_HELD', lockName: 'a', backend: 'scripted' });
  expect(backend.sent.map(({ method }) => method)).toEqual(['attempt']);
});

test('an id that inspect shows is no ticket: nothing is sent, and inspect never shows that of a ticket', async () => {
  const backend = handingOver({
    inspect: async (resource) => ({
      ...{ name: resource, waiters: [] },
      holders: [{ acquisitionId: TICKET.acquisitionId, mode: { kind: 'exclusive' } }],
    }),
  });
  const locks = locksOn(backend);
  const [holder] = (await locks.inspect('a')).holders;
  expect(holder?.acquisitionId).toBe('former'.padEnd(20, '-'));
  const acquisitionId = holder?.acquisitionId ?? '';
  expect(await rejectionOf(adopt(locks, { ...TICKET, acquisitionId }))).toBe('LOCK_NOT_HELD');
  expect(backend.sent).toEqual([]);
});

test('after the time of the ticket it is not adopted where the clients of the store have no single clock', async () => {
  useFakeClock();
  const ticket = { ...TICKET, endsAt: Date.now() + 100 };
  const observed = handingOver({ capabilities: { ...capabilities, expiry: 'observed' } });
  const clock = handingOver();
  await pass(99);
  await adopt(locksOn(observed), ticket);
  await pass(1);
  expect(await rejectionOf(adopt(locksOn(observed), ticket))).toBe('LOCK_NOT_HELD');
  expect(observed.of('attempt')).toHaveLength(1);
  // The clock of the store says what is over.
  await adopt(locksOn(clock), ticket);
});

test('an adoption without an answer is sent again with its id, and abandoned after waitMs or at an abort', async () => {
  const backend = handingOver({ attempt: () => Promise.reject(new Error('away')) });
  const locks = locksOn(backend);
  const adoption = rejectionOf(adopt(locks, TICKET, { waitMs: 250 }));
  expect(await adoption).toBe('LOCK_BACKEND');
  const ids = new Set(backend.of('attempt').flatMap((one) => one.ids));
  expect(backend.of('attempt').length).toBeGreaterThan(1);
  expect(ids.size).toBe(1);
  expect(backend.of('abandon').map((one) => one.ids[0])).toEqual([...ids]);
  const abort = new AbortController();
  const aborted = adopt(locks, TICKET, { signal: abort.signal }).catch((error: unknown) => error);
  await settled();
  abort.abort('enough');
  expect(await aborted).toBe('enough');
});

test('what is no ticket, no manager, or no option is refused before anything is sent', async () => {
  const backend = handingOver();
  const locks = locksOn(backend);
  const wrong: unknown[] = [
    null,
    'a',
    { ...TICKET, version: 2 },
    { ...TICKET, name: '' },
    { ...TICKET, acquisitionId: 'no id!' },
    { ...TICKET, fencingToken: 7 },
    { ...TICKET, ttlMs: 1 },
    { ...TICKET, ttlMs: Number.NaN },
    { ...TICKET, endsAt: '1' },
    { ...TICKET, extra: true },
  ];
  for (const ticket of wrong)
    expect(await rejectionOf(adopt(locks, ticket as never))).toBe('LOCK_INVALID_ARGUMENT');
  for (const manager of [null, {}, TICKET])
    expect(await rejectionOf(adopt(manager as never, TICKET))).toBe('LOCK_INVALID_ARGUMENT');
  for (const options of [{ ttl: 5 }, { steal: true }, { waitMs: -1 }, null])
    expect(await rejectionOf(adopt(locks, TICKET, options as never))).toBe('LOCK_INVALID_ARGUMENT');
  expect(backend.sent).toEqual([]);
  await locks.close();
  expect(await rejectionOf(adopt(locks, TICKET))).toBe('LOCK_CLOSED');
});
