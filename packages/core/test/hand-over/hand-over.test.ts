import { expect, test } from 'vitest';
import type { AcquireRequest, BackendCapabilities, LockBackend } from '../../src/backend/types.ts';
import { adopt, handOver, type HandOverTicket } from '../../src/hand-over/index.ts';
import { listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import {
  answerLater,
  capabilities as scripted,
  contended,
  granted,
  held,
  noAnswer,
  type ScriptedBackend,
  scriptedBackend,
} from '../scripted-backend.ts';

const capabilities: BackendCapabilities = {
  ...scripted,
  modes: ['exclusive', 'shared'],
  features: ['hand-over'],
};
const TICKET: HandOverTicket = {
  version: 1,
  name: 'a',
  acquisitionId: 'former',
  fencingToken: '7',
  ttlMs: 20_000,
};

function handingOver(script: Partial<LockBackend> = {}): ScriptedBackend {
  return scriptedBackend({ capabilities, ...script });
}

test('a lease that is handed over is renewed once more, and then neither renewed, released nor lost', async () => {
  useFakeClock();
  const backend = handingOver();
  const [lost, released] = [listenTo('locks:lost'), listenTo('locks:released')];
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const { acquisitionId, fencingToken } = lease;
  const ticket = await handOver(lease, { ttlMs: 40_000 });
  expect(ticket).toEqual({
    version: 1,
    name: 'a',
    acquisitionId,
    fencingToken: String(fencingToken),
    ttlMs: 40_000,
  });
  expect(backend.of('renew')).toMatchObject([{ ttlMs: 40_000 }]);
  expect([lease.validForMs, lease.holdCount]).toEqual([0, 0]);
  expect(() => lease.assertValid()).toThrow(/was handed over/);
  expect(await rejectionOf(lease.renew())).toBe('LOCK_NOT_HELD');
  await lease.release();
  await pass(120_000);
  expect(lease.signal.aborted).toBe(false);
  expect(backend.of('renew')).toHaveLength(1);
  expect(backend.of('release')).toEqual([]);
  expect(backend.of('abandon')).toEqual([]);
  expect(lost).toEqual([]);
  expect(released).toHaveLength(1);
});

test('the process does not believe in the lease any more when there is a ticket', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const lease = await locksOn(handingOver({ renew: (items) => answer.then(() => held(items)) }))
    .lock('a')
    .acquire();
  const handed = handOver(lease).then(() => lease.validForMs);
  expect(lease.validForMs).toBeGreaterThan(0);
  give();
  expect(await handed).toBe(0);
});

test('a run whose work hands its lease over releases nothing', async () => {
  const backend = handingOver();
  const { name } = await locksOn(backend)
    .lock('a')
    .run((lease) => handOver(lease));
  expect(name).toBe('a');
  expect(backend.of('release')).toEqual([]);
});

test.each([
  ['fails', () => Promise.reject(new Error('away')), 'LOCK_BACKEND', 'held'],
  ['gets no answer', noAnswer<never>, 'LOCK_BACKEND', 'held'],
  [
    'finds a loss',
    () => Promise.resolve([{ status: 'lost', reason: 'taken-over' } as const]),
    'LOCK_LOST',
    'lost',
  ],
])('where its renewal %s there is no ticket', async (_, renew, code, then) => {
  useFakeClock();
  let renewals = 0;
  const backend = handingOver({
    renew: (items) => (++renewals === 1 ? renew() : Promise.resolve(held(items))),
    attempt: async (request, _enqueue, call) => granted(request, call),
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const handed = rejectionOf(handOver(lease, { ttlMs: 20_000 }));
  await pass(20_000);
  expect(await handed).toBe(code);
  if (then === 'lost') expect(lease.signal.aborted).toBe(true);
  if (code === 'LOCK_LOST') return;
  await lease.release().catch(() => undefined);
});

test('of a hand-over, another one and a release at once, the first to end wins', async () => {
  const { answer, give } = answerLater<void>();
  const backend = handingOver({ renew: (items) => answer.then(() => held(items)) });
  const locks = locksOn(backend);
  const [one, other] = [await locks.lock('a').acquire(), await locks.lock('b').acquire()];
  const both = [handOver(one), handOver(one)].map(rejectionOf);
  const late = rejectionOf(handOver(other));
  await other.release();
  give();
  expect(await Promise.all(both)).toEqual(['fulfilled', 'LOCK_NOT_HELD']);
  expect(await late).toBe('LOCK_NOT_HELD');
});

test('a lease is refused that others have a part in, that is shared, that is over, or that is none', async () => {
  const locks = locksOn(handingOver());
  const lease = await locks.lock('a').acquire();
  const child = await locks.lock('a').acquire({ within: lease });
  expect(await rejectionOf(handOver(lease))).toBe('LOCK_REENTRANT');
  await child.release();
  const reader = await locks.readWriteLock('b').read.acquire();
  expect(await rejectionOf(handOver(reader))).toBe('LOCK_UNSUPPORTED');
  for (const [wrong, options] of [
    [null],
    [{}],
    [lease, { ttl: 5 }],
    [lease, { ttlMs: 1 }],
    [lease, null],
    [lease, { ttlMs: '5' }],
  ] as [never, never][])
    expect(await rejectionOf(handOver(wrong, options))).toBe('LOCK_INVALID_ARGUMENT');
  await lease.release();
  expect(await rejectionOf(handOver(lease))).toBe('LOCK_NOT_HELD');
  const plain = locksOn(scriptedBackend());
  expect(await rejectionOf(handOver(await plain.lock('a').acquire()))).toBe('LOCK_UNSUPPORTED');
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
    { resource: 'a', adopts: 'former', ttlMs: 20_000, label: 'manager' },
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
  await expect(adoption).rejects.toMatchObject({ code: 'LOCK_NOT_HELD', resource: 'a', backend: 'scripted' });
  expect(backend.sent.map(({ method }) => method)).toEqual(['attempt']);
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
