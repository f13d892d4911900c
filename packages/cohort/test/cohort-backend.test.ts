import { expect, onTestFinished, test, vi } from 'vitest';
import { createLocks, type LockManager } from '@locks/core';
import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Grant,
  LockBackend,
  RenewItem,
  RenewalStatus,
} from '@locks/core/backend';
import { cohortBackend, type CohortOptions } from '../src/index.ts';

const capabilities: BackendCapabilities = {
  tenure: 'lease',
  renewal: 'own-client',
  reach: 'process',
  modes: ['exclusive'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 10, stepMs: 1 },
  features: [],
};

let tokens = 0n;

function grant(request: AcquireRequest, call: Call): Grant {
  tokens += 1n;
  return { request, fencingToken: tokens, countedFrom: call.now() };
}

function held(items: readonly RenewItem[]): readonly RenewalStatus[] {
  return items.map(() => ({ status: 'held' }));
}

interface QueueStore extends LockBackend {
  /** The ids that hold and wait, in order. */
  readonly queue: string[];
  readonly calls: string[];
  renewalStatus: RenewalStatus | undefined;
}

/** A store with one resource and a queue, which counts what it is asked. */
function queueStore(): QueueStore {
  const queue: string[] = [];
  const calls: string[] = [];
  const waiting = new Map<string, { readonly request: AcquireRequest; enter(grant: Grant): void }>();
  const leave = (id: string): boolean => {
    const position = queue.indexOf(id);
    if (position < 0) return false;
    queue.splice(position, 1);
    const next = waiting.get(queue[0] ?? '');
    if (position === 0 && next !== undefined) {
      waiting.delete(queue[0] ?? '');
      next.enter(grant(next.request, call));
    }
    return position === 0;
  };
  const store: QueueStore = {
    spec: 'locks-backend/1',
    name: 'queue',
    capabilities: {
      ...capabilities,
      modes: ['exclusive', 'shared'],
      features: ['steal', 'waiters', 'force-release'],
    },
    queue,
    calls,
    renewalStatus: undefined,
    attempt(request, enqueue, at): Promise<Attempt> {
      calls.push(`attempt ${request.acquisitionId}`);
      const id = request.acquisitionId;
      if (request.steal === true) queue.splice(0, 1, id);
      if (!queue.includes(id) && (enqueue || queue.length === 0)) queue.push(id);
      return Promise.resolve(
        queue[0] === id ? { status: 'granted', grant: grant(request, at) } : { status: 'contended' },
      );
    },
    awaitTurn(request, at) {
      const id = request.acquisitionId;
      if (queue[0] === id) return Promise.resolve(grant(request, at));
      return new Promise((enter) => {
        waiting.set(id, { request, enter });
        at.signal?.addEventListener('abort', () => enter(undefined), { once: true });
      });
    },
    abandon(request) {
      calls.push(`abandon ${request.acquisitionId}`);
      leave(request.acquisitionId);
      return Promise.resolve();
    },
    release({ request }) {
      calls.push(`release ${request.acquisitionId}`);
      return Promise.resolve(leave(request.acquisitionId) ? 'released' : 'not-held');
    },
    renew: (items) =>
      Promise.resolve(store.renewalStatus === undefined ? held(items) : [store.renewalStatus]),
    downgrade: () => Promise.resolve({ status: 'held' }),
    inspect: (resource) => Promise.resolve({ name: resource, holders: [], waiters: [] }),
    forceRelease: () => Promise.resolve([]),
    isRetryable: () => false,
    close: () => Promise.resolve(),
  };
  return store;
}

const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
let ids = 0;
const gaveUp = new Set<AcquireRequest>();

function giveUp(backend: LockBackend, request: AcquireRequest): Promise<void> {
  gaveUp.add(request);
  return backend.abandon(request, call);
}

function ask(ttlMs = 30_000): AcquireRequest {
  ids += 1;
  return { resource: 'a', acquisitionId: `id-${ids}`, mode: { kind: 'exclusive' }, ttlMs };
}

function setUp(options: CohortOptions = { turns: 64, withinMs: 5_000 }): {
  readonly store: QueueStore;
  readonly backend: LockBackend;
  readonly locks: LockManager;
} {
  const store = queueStore();
  const backend = cohortBackend(store, options);
  const locks = createLocks(backend);
  onTestFinished(() => locks.close());
  return { store, backend, locks };
}

/** Lets a request join the queue, and gives what its wait resolves with. */
async function join(backend: LockBackend, request: AcquireRequest): Promise<{ grant: Grant | undefined }> {
  expect(await backend.attempt(request, true, call)).toEqual({ status: 'contended' });
  const turn: { grant: Grant | undefined } = { grant: undefined };
  const wait = async (): Promise<void> => {
    turn.grant = await backend.awaitTurn?.(request, call);
    if (turn.grant !== undefined || gaveUp.has(request)) return;
    const again = await backend.attempt(request, true, call);
    if (again.status === 'granted') turn.grant = again.grant;
    else await wait();
  };
  void wait();
  await settle();
  return turn;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

async function holdFor(store: QueueStore): Promise<AcquireRequest> {
  const outside = ask();
  await store.attempt(outside, true, call);
  return outside;
}

test('a lease serves all who waited in the process with one attempt and one release of the store', async () => {
  const { store, locks } = setUp();
  const outside = await holdFor(store);
  const tokens: bigint[] = [];
  const all = Array.from({ length: 10 }, () =>
    locks.lock('a').run(async ({ fencingToken }) => void tokens.push(fencingToken ?? 0n)),
  );
  await settle();
  store.calls.length = 0;
  await store.release(grant(outside, call), call);
  await Promise.all(all);
  expect(store.calls.map((one) => one.split(' ')[0])).toEqual(['release', 'release']);
  expect(tokens).toEqual(tokens.map((_, turn) => (tokens[0] ?? 0n) + BigInt(turn)));
  expect(store.queue).toEqual([]);
});

test('10 000 waiters of one process are one entry in the queue of the store', async () => {
  const { store, locks } = setUp({ turns: 256, withinMs: 10_000 });
  const outside = await holdFor(store);
  let entered = 0;
  const all = Array.from({ length: 10_000 }, () => locks.lock('a').run(() => void (entered += 1)));
  await vi.waitUntil(() => store.queue.length >= 2, { timeout: 20_000, interval: 5 });
  await settle();
  expect(store.queue).toHaveLength(2);
  await store.release(grant(outside, call), call);
  await Promise.all(all);
  expect(entered).toBe(10_000);
  expect(store.queue).toEqual([]);
});

test('another waiter goes on with the entry of a leader that gives up', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const [leader, next] = [ask(), ask()];
  await join(backend, leader);
  const turn = await join(backend, next);
  store.calls.length = 0;
  await giveUp(backend, leader);
  await giveUp(backend, leader);
  await settle();
  expect(store.calls).toEqual([`attempt ${leader.acquisitionId}`]);
  await store.release(grant(outside, call), call);
  await settle();
  expect(turn.grant?.request.acquisitionId).toBe(next.acquisitionId);
  await backend.release(turn.grant as Grant, call);
  expect(store.queue).toEqual([]);
});

test('the last waiter to give up leaves nothing in the store', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const requests = [ask(), ask()];
  for (const request of requests) await join(backend, request);
  for (const request of requests) await giveUp(backend, request);
  expect(store.queue).toEqual([outside.acquisitionId]);
});

test('a waiter with another ttl waits for a lease of its own', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const [first, second] = [await join(backend, ask()), await join(backend, ask(60_000))];
  await store.release(grant(outside, call), call);
  await settle();
  await backend.release(first.grant as Grant, call);
  await settle();
  expect(second.grant?.validForMs).toBe(60_000);
  expect((second.grant?.fencingToken ?? 0n) & 255n).toBe(0n);
});

test('the first turn of a lease that another waiter asked for counts for no more than its own ttl', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const first = await join(backend, ask());
  const brief = await join(backend, ask(1_000));
  await store.release(grant(outside, call), call);
  await settle();
  // It came after the grant, and waits at the store for both.
  const late = ask();
  await join(backend, late);
  await backend.release(first.grant as Grant, call);
  await settle();
  expect(brief.grant?.validForMs).toBe(1_000);
  await giveUp(backend, late);
});

test('a turn that is abandoned ends the lease', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const [request, other] = [ask(), ask()];
  const [first, second] = [await join(backend, request), await join(backend, other)];
  await store.release(grant(outside, call), call);
  await settle();
  expect(first.grant).toBeDefined();
  await backend.abandon(request, call);
  await settle();
  expect(store.calls).toContain(`abandon ${request.acquisitionId}`);
  expect((second.grant?.fencingToken ?? 0n) & 255n).toBe(0n);
});

test('a turn that is over neither releases nor renews nor abandons that of another', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const [request, other] = [ask(), ask()];
  const [first, second] = [await join(backend, request), await join(backend, other)];
  await store.release(grant(outside, call), call);
  await settle();
  expect(await backend.release(first.grant as Grant, call)).toBe('released');
  await settle();
  expect(second.grant).toBeDefined();
  store.calls.length = 0;
  expect(await backend.release(first.grant as Grant, call)).toBe('not-held');
  await backend.abandon(request, call);
  const [renewalStatus] = await backend.renew([{ grant: first.grant as Grant, ttlMs: 30_000 }], call);
  expect(renewalStatus?.status).toBe('lost');
  expect(store.calls).toEqual([]);
  expect(await backend.release(second.grant as Grant, call)).toBe('released');
});

test('an acquisition whose lease ended before it knew of its turn waits again, and has a token of its own', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const request = ask();
  const before = await join(backend, request);
  await store.release(grant(outside, call), call);
  await settle();
  const ended = before.grant as Grant;
  store.queue.length = 0;
  const between = await holdFor(store);
  expect(await backend.attempt(request, true, call)).toEqual({ status: 'contended' });
  expect(store.queue).toEqual([between.acquisitionId, request.acquisitionId]);
  const turn = backend.awaitTurn?.(request, call);
  await store.release(grant(between, call), call);
  const next = (await turn) as Grant;
  expect(next.fencingToken).toBeGreaterThan(ended.fencingToken as bigint);
  expect(await backend.release(ended, call)).toBe('not-held');
  expect(await backend.release(next, call)).toBe('released');
});

test.each(['a steal', 'a forced release', 'a loss', 'a downgrade', 'another ttl'])(
  'after %s of this process nobody has a turn with the lease',
  async (end) => {
    const { store, backend } = setUp();
    const outside = await holdFor(store);
    const [first, second] = [await join(backend, ask()), await join(backend, ask())];
    await store.release(grant(outside, call), call);
    await settle();
    const given = first.grant as Grant;
    const thief = { ...ask(), steal: true } as const;
    if (end === 'a steal') await backend.attempt(thief, false, call);
    if (end === 'a forced release') await backend.forceRelease?.('a', undefined, call);
    if (end === 'a downgrade') await backend.downgrade?.(given, call);
    if (end === 'a loss') store.renewalStatus = { status: 'lost', reason: 'expired' };
    if (end === 'a loss' || end === 'another ttl')
      await backend.renew([{ grant: given, ttlMs: end === 'a loss' ? 30_000 : 1_000 }], call);
    await settle();
    await backend.release(given, call);
    await settle();
    if (end === 'a steal') expect(second.grant).toBeUndefined();
    else expect((second.grant?.fencingToken ?? 0n) & 255n).toBe(0n);
  },
);

test.each(['its ttl', 'a report of its loss', 'a renewal with another ttl'])(
  'those who count on a lease ask the store when it ends by %s, though its holder never releases',
  async (end) => {
    const { store, backend } = setUp({ turns: 64, withinMs: 10_000 });
    const lost = new AbortController();
    const wait = store.awaitTurn?.bind(store);
    store.awaitTurn = async (request, at) => {
      const granted = await wait?.(request, at);
      return granted && { ...granted, lost: lost.signal };
    };
    const outside = await holdFor(store);
    const ttlMs = end === 'its ttl' ? 100 : 30_000;
    const requests = [ask(ttlMs), ask(ttlMs)] as const;
    const [first] = [await join(backend, requests[0]), await join(backend, requests[1])];
    await store.release(grant(outside, call), call);
    await settle();
    expect(first.grant).toBeDefined();
    const isKnown = (): boolean => store.queue.includes(requests[1].acquisitionId);
    expect(isKnown()).toBe(false);
    if (end === 'a report of its loss') lost.abort('force-released');
    if (end === 'a renewal with another ttl')
      await backend.renew([{ grant: first.grant as Grant, ttlMs: 1_000 }], call);
    await vi.waitFor(() => expect(isKnown()).toBe(true), 5_000);
  },
);

test('a renewal moves the moment at which those who count on a lease ask the store', async () => {
  const { store, backend } = setUp({ turns: 64, withinMs: 10_000 });
  const outside = await holdFor(store);
  const requests = [ask(1_500), ask(1_500)] as const;
  const [first, second] = [await join(backend, requests[0]), await join(backend, requests[1])];
  await store.release(grant(outside, call), call);
  await settle();
  const end = performance.now() + 2_000;
  while (performance.now() < end) {
    await backend.renew([{ grant: first.grant as Grant, ttlMs: 1_500 }], call);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(store.queue).not.toContain(requests[1].acquisitionId);
  await backend.release(first.grant as Grant, call);
  await settle();
  // It has the second turn of the lease.
  expect((second.grant?.fencingToken ?? 0n) & 255n).toBe(1n);
});

test('a lease with a third of its ttl over is not passed on', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const [first, second] = [await join(backend, ask(90)), await join(backend, ask(90))];
  await store.release(grant(outside, call), call);
  await settle();
  await new Promise((resolve) => setTimeout(resolve, 40));
  await backend.release(first.grant as Grant, call);
  await settle();
  expect((second.grant?.fencingToken ?? 0n) & 255n).toBe(0n);
});

test('a try does not ask the store while others wait in the process', async () => {
  const { store, backend } = setUp();
  await holdFor(store);
  await join(backend, ask());
  store.calls.length = 0;
  expect(await backend.attempt(ask(), false, call)).toEqual({ status: 'contended' });
  expect(store.calls).toEqual([]);
});

test('a backend without a queue is refused', () => {
  const none = { ...queueStore(), capabilities: { ...capabilities, order: 'none' as const } };
  expect(() => cohortBackend(none)).toThrow(expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }));
  expect(() => cohortBackend(queueStore(), { turns: 1 })).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
  expect(() => cohortBackend(queueStore(), { turns: 257 })).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
  expect(() => cohortBackend(cohortBackend(queueStore()))).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
});

test('a cohort prepares the store below it', async () => {
  let prepared = 0;
  const prepare = (): Promise<void> => {
    prepared += 1;
    return Promise.resolve();
  };
  await createLocks(cohortBackend({ ...queueStore(), prepare })).prepare();
  expect(prepared).toBe(1);
  await createLocks(cohortBackend(queueStore())).prepare();
});

test('another instance renews the lease of a turn by a copy of the grant of the store, and never by a shorter ttl', async () => {
  const { store, backend } = setUp();
  const outside = await holdFor(store);
  const [leader, request] = [ask(), ask()];
  const [first, second] = [await join(backend, leader), await join(backend, request)];
  await store.release(grant(outside, call), call);
  await settle();
  expect(await backend.release(first.grant as Grant, call)).toBe('released');
  await settle();
  // The request of the leader holds at the store.
  const { request: held, fencingToken } = structuredClone(second.grant?.atStore) as Grant;
  expect([held.acquisitionId, fencingToken]).toEqual([
    leader.acquisitionId,
    (second.grant?.fencingToken ?? 0n) >> 8n,
  ]);
  const other = cohortBackend(store, { turns: 64, withinMs: 5_000 });
  const renewed = (ttlMs: number) =>
    other.renew(
      [{ grant: { request: held, countedFrom: 0, ...(fencingToken && { fencingToken }) }, ttlMs }],
      call,
    );
  expect(await renewed(30_000)).toEqual([{ status: 'held' }]);
  expect(await renewed(40_000)).toEqual([{ status: 'held' }]);
  store.calls.length = 0;
  expect(await renewed(20_000)).toMatchObject([{ status: 'unknown' }]);
  expect(await backend.renew([{ grant: second.grant as Grant, ttlMs: 20_000 }], call)).toEqual([
    { status: 'held' },
  ]);
});
