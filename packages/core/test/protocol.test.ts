import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { isTransferred } from '../src/acquire/acquisition-id.ts';
import type { ProtocolEvent } from '../src/index.ts';
import { transfer } from '../src/transfer/index.ts';
import { locksOn, pass, useFakeClock } from './fixture.ts';
import { capabilities, contended, granted, noAnswer, scriptedBackend } from './scripted-backend.ts';

function listen(): ProtocolEvent[] {
  const events: ProtocolEvent[] = [];
  const receive = (message: unknown): void => void events.push(message as ProtocolEvent);
  subscribe('locks:protocol', receive);
  onTestFinished(() => void unsubscribe('locks:protocol', receive));
  return events;
}

/** Each event in a word or two. */
function inShort(events: readonly ProtocolEvent[]): string[] {
  const methods = new Map<number, string>();
  return events.map((event) => {
    switch (event.step) {
      case 'call':
        methods.set(event.call, event.method);
        return event.method;
      case 'answer':
        return `${methods.get(event.call)}: ${event.outcomes.map(({ status }) => status).join()}`;
      case 'ends':
        return `ends: ${event.why}`;
      default:
        return event.step;
    }
  });
}

test('a call is told before it is sent, its answer before what follows from it, and the end before the release', async () => {
  const locks = locksOn(scriptedBackend());
  const events = listen();
  const lease = await locks.lock('a').acquire({ ttlMs: 1_000 });
  await lease.renew();
  await lease.release();
  await locks.close();
  expect(inShort(events)).toEqual([
    ...['attempt', 'attempt: granted', 'believes'],
    // The ttl of a renewal may be shorter: what is believed is told before it is sent, too.
    ...['believes', 'renew', 'renew: held', 'believes'],
    ...['ends: released', 'release', 'release: released', 'closes'],
  ]);
  const [call, answer, believes] = events as [ProtocolEvent, ProtocolEvent, ProtocolEvent];
  const { acquisitionId, fencingToken } = lease;
  expect(call).toMatchObject({ enqueue: true, acquisitions: [{ name: 'a', acquisitionId, ttlMs: 1_000 }] });
  expect(answer).toMatchObject({ outcomes: [{ fencingToken, countedFrom: expect.any(Number) }] });
  expect(believes).toMatchObject({ acquisition: { fencingToken }, renews: true, until: expect.any(Number) });
  expect(new Set(events.map(({ client }) => client)).size).toBe(1);
  expect(call.client).toEqual({ backend: 'scripted', capabilities });
});

test('nothing is built while nobody listens, and the backend is called as it is', async () => {
  const backend = scriptedBackend();
  let touched = 0;
  const watched = {
    ...backend,
    get name() {
      return ((touched += 1), 'scripted');
    },
  };
  const locks = locksOn(watched);
  const before = touched;
  await (await locks.lock('a').acquire()).release();
  expect(channel('locks:protocol').hasSubscribers).toBe(false);
  expect(touched).toBe(before);
  const events = listen();
  await (await locks.lock('a').acquire()).release();
  expect(events.length).toBeGreaterThan(0);
  await locks.close();
});

test('a wait that gives up is told before its abandon', async () => {
  useFakeClock();
  const locks = locksOn(
    scriptedBackend({ attempt: () => Promise.resolve(contended), awaitTurn: () => noAnswer() }),
  );
  const events = listen();
  const acquiring = locks
    .lock('a')
    .acquire({ waitMs: 50 })
    .catch((error: unknown) => error);
  await pass(60);
  expect(await acquiring).toMatchObject({ code: 'LOCK_TIMEOUT' });
  expect(inShort(events)).toEqual([
    'attempt',
    'attempt: contended',
    'awaitTurn',
    'gives-up',
    'abandon',
    'abandon: none',
  ]);
  await locks.close();
});

test.each([
  ['rejects', () => Promise.reject(new Error('away'))],
  [
    'throws',
    (): never => {
      throw new Error('away');
    },
  ],
])('a call that %s is told as failed, and fails as before', async (_, attempt) => {
  const locks = locksOn(scriptedBackend({ attempt, isRetryable: () => false }));
  const events = listen();
  await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await locks.close();
  expect(inShort(events).slice(0, 3)).toEqual(['attempt', 'attempt: failed', 'gives-up']);
});

test('a lease that is lost ends once, with its reason', async () => {
  useFakeClock();
  const locks = locksOn(scriptedBackend());
  const events = listen();
  const lease = await locks.lock('a').acquire({ ttlMs: 1_000, renewal: 'manual' });
  await pass(1_000);
  await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_LOST' });
  expect(inShort(events)).toEqual(['attempt', 'attempt: granted', 'believes', 'ends: expired']);
  await locks.close();
});

test('re-entries are told with the entry around them', async () => {
  const locks = locksOn(scriptedBackend());
  const lock = locks.lock('a', { reentrant: true });
  const events = listen();
  await lock.run(() => lock.run(() => lock.run(() => {})));
  const entries = events.flatMap((event) =>
    event.step === 'enters' || event.step === 'leaves' ? [event] : [],
  );
  expect(entries.map(({ step }) => step)).toEqual(['enters', 'enters', 'leaves', 'leaves']);
  expect(entries[1]?.within).toBe(entries[0]?.scope);
  expect(entries[2]?.scope).toBe(entries[1]?.scope);
  await locks.close();
});

test('the secret of a ticket is in no event', async () => {
  const ids: string[] = [];
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['transfer'] },
    attempt(request, _, call) {
      ids.push(request.acquisitionId);
      return Promise.resolve(granted(request, call));
    },
  });
  const locks = locksOn(backend);
  const events = listen();
  const { acquisitionId: secret } = await transfer(await locks.lock('a').acquire());
  await locks.close();
  expect(ids).toContain(secret);
  expect(isTransferred(secret)).toBe(true);
  expect(inShort(events)).toContain('ends: transferred');
  expect(
    JSON.stringify(events, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)),
  ).not.toContain(secret.slice(20));
});
