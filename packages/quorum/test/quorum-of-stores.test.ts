/** Tests of a quorum of stores that fail, hang, or disagree. The suite tests its promises as a backend. */
import { createLocks, isLockError } from '@locks/core';
import type { LockBackend, AcquireRequest, Call } from '@locks/core/backend';
import { delegate } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { expect, test } from 'vitest';
import { quorumBackend, type QuorumOptions } from '../src/index.ts';

const TTL_MS = 5_000;
const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
const never = new Promise<never>(() => {});

interface Node {
  readonly store: MemoryStore;
  backend: LockBackend;
}

function nodesOf(count: number): Node[] {
  return Array.from({ length: count }, () => {
    const store = new MemoryStore();
    return { store, backend: memoryBackend(store) };
  });
}

function quorumOf(nodes: readonly Node[], options?: QuorumOptions): LockBackend {
  return quorumBackend(
    nodes.map(({ backend }) => backend),
    options,
  );
}

let ids = 0;
function request(resource: string, ttlMs = TTL_MS): AcquireRequest {
  ids += 1;
  return { resource, acquisitionId: `id-${ids}`, mode: { kind: 'exclusive' }, ttlMs };
}

function holders(nodes: readonly Node[], name: string): string[][] {
  return nodes.map(({ store }) => store.holders(name).map(({ id }) => id));
}

/** Makes every call of the node hang or fail. */
function broken(node: Node, how: 'hangs' | 'fails'): void {
  const act = (): Promise<never> => (how === 'hangs' ? never : Promise.reject(new Error('the node is down')));
  node.backend = delegate(node.backend, {
    attempt: act,
    abandon: act,
    renew: act,
    release: act,
    inspect: act,
    forceRelease: act,
    isRetryable: () => true,
  });
}

async function settled<T>(what: () => T | Promise<T>, expected: (value: T) => boolean): Promise<void> {
  await expect.poll(async () => expected(await what()), { timeout: 2_000, interval: 5 }).toBe(true);
}

test.each(['hangs', 'fails'] as const)('a lock works while a minority %s', async (how) => {
  const nodes = nodesOf(3);
  broken(nodes[1] as Node, how);
  const locks = createLocks(quorumOf(nodes, { nodeTimeoutMs: 1_000 }), { ttlMs: TTL_MS });
  const startedAt = performance.now();
  const lease = await locks.lock('a').acquire();
  expect(await locks.lock('a').tryAcquire()).toBeUndefined();
  await lease.renew();
  expect((await locks.inspect('a').catch(() => undefined))?.holders.length ?? 1).toBe(1);
  await lease.release();
  await (await locks.lock('a').acquire()).release();
  if (how === 'fails') expect(performance.now() - startedAt).toBeLessThan(900);
  await locks.close();
});

test('a grant does not wait for the slowest node, and is released there too', async () => {
  const nodes = nodesOf(3);
  const slow = nodes[2] as Node;
  const sound = slow.backend;
  let answer: () => void = () => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  slow.backend = delegate(sound, {
    async attempt(...args) {
      const attempt = await sound.attempt(...args);
      await answered;
      return attempt;
    },
  });
  const quorum = quorumOf(nodes);
  const attempt = await quorum.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error('not granted');
  expect(await quorum.release(attempt.grant, call)).toBe('released');
  answer();
  await settled(
    () => holders(nodes, 'a'),
    (held) => held.flat().length === 0,
  );
});

test('an acquire is refused as soon as no majority is possible, and nothing is left on the other nodes', async () => {
  const nodes = nodesOf(5);
  for (const node of nodes.slice(0, 3)) broken(node, 'fails');
  broken(nodes[3] as Node, 'hangs');
  const quorum = quorumOf(nodes, { nodeTimeoutMs: 5_000 });
  const startedAt = performance.now();
  await expect(quorum.attempt(request('a'), false, call)).rejects.toThrow(/3 of 5 nodes failed to acquire/);
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  await settled(
    () => holders(nodes, 'a'),
    (held) => held.flat().length === 0,
  );
});

test('a lost vote leaves nothing on the minority before the next try', async () => {
  const nodes = nodesOf(3);
  const rival = request('a');
  for (const { store } of nodes.slice(0, 2)) store.acquire(rival, false);
  const quorum = quorumOf(nodes);
  expect((await quorum.attempt(request('a'), false, call)).status).toBe('contended');
  expect(holders(nodes, 'a')).toEqual([[rival.acquisitionId], [rival.acquisitionId], []]);
});

test('a grant of a node that answers after the vote was lost is returned', async () => {
  const nodes = nodesOf(3);
  for (const { store } of nodes.slice(0, 2)) store.acquire(request('a'), false);
  const slow = nodes[2] as Node;
  const sound = slow.backend;
  slow.backend = delegate(sound, {
    async attempt(...args) {
      await new Promise((resolve) => setTimeout(resolve, 60));
      return sound.attempt(...args);
    },
  });
  const quorum = quorumOf(nodes);
  expect((await quorum.attempt(request('a'), false, call)).status).toBe('contended');
  await new Promise((resolve) => setTimeout(resolve, 80));
  await settled(
    () => slow.store.holders('a'),
    (held) => held.length === 0,
  );
});

test('a majority that came too late for its ttl is no lock, and is returned', async () => {
  const nodes = nodesOf(3);
  for (const node of nodes) {
    const sound = node.backend;
    node.backend = delegate(sound, {
      async attempt(...args) {
        const attempt = await sound.attempt(...args);
        await new Promise((resolve) => setTimeout(resolve, 80));
        return attempt;
      },
    });
  }
  const quorum = quorumOf(nodes);
  const attempt = await quorum.attempt(request('a', 60), false, call);
  expect(attempt.status).toBe('contended');
  expect(holders(nodes, 'a')).toEqual([[], [], []]);
});

test('a lease is valid for as long as a majority holds, less the drift', async () => {
  const nodes = nodesOf(3);
  const quorum = quorumOf(nodes, { driftFactor: 0.1 });
  const startedAt = call.now();
  const attempt = await quorum.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error('not granted');
  const end = attempt.grant.countedFrom + (attempt.grant.validForMs ?? TTL_MS);
  expect(end).toBeLessThanOrEqual(call.now() + TTL_MS * 0.9 - 2);
  expect(end).toBeGreaterThan(startedAt + TTL_MS * 0.9 - 200);
  // After one node ended early the other two are still a majority; after the second the lease is lost.
  nodes[0]?.store.abandon('a', attempt.grant.request.acquisitionId);
  const renew = () => quorum.renew([{ grant: attempt.grant, ttlMs: TTL_MS }], call);
  expect((await renew())[0]).toMatchObject({ status: 'held' });
  nodes[1]?.store.abandon('a', attempt.grant.request.acquisitionId);
  expect((await renew())[0]).toMatchObject({ status: 'lost' });
  expect(await quorum.release(attempt.grant, call)).toBe('not-held');
});

test('a renewal that a majority did not answer is unknown, not lost', async () => {
  const nodes = nodesOf(3);
  const quorum = quorumOf(
    nodes.map((node, index) => ({
      ...node,
      backend:
        index === 0
          ? node.backend
          : delegate(node.backend, { renew: () => Promise.reject(new Error('down')) }),
    })),
  );
  const attempt = await quorum.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error('not granted');
  expect((await quorum.renew([{ grant: attempt.grant, ttlMs: TTL_MS }], call))[0]?.status).toBe('unknown');
});

test.each([1, 2, 4, 5])('of %i nodes no two halves win', async (count) => {
  const nodes = nodesOf(count);
  const one = request('a');
  // The rival has one half of the nodes, and one more where the count is odd and above one.
  const half = Math.floor(count / 2);
  for (const { store } of nodes.slice(0, half)) store.acquire(one, false);
  const quorum = quorumOf(nodes);
  const attempt = await quorum.attempt(request('a'), false, call);
  expect(attempt.status).toBe(count - half > count / 2 ? 'granted' : 'contended');
});

test('rivals who split the nodes come to an end', async () => {
  const nodes = nodesOf(4);
  const managers = [1, 2, 3, 4].map(() => createLocks(quorumOf(nodes), { ttlMs: TTL_MS, waitMs: 20_000 }));
  let inside = 0;
  await Promise.all(
    managers.map((locks) =>
      locks.lock('a').run(async () => {
        inside += 1;
        expect(inside).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inside -= 1;
      }),
    ),
  );
  await Promise.all(managers.map((locks) => locks.close()));
});

test('what cannot be a quorum is refused at once', () => {
  const isInvalid = (error: unknown) => isLockError(error, 'LOCK_INVALID_ARGUMENT');
  const backend = memoryBackend();
  const session = delegate(backend, { capabilities: { ...backend.capabilities, tenure: 'session' } });
  const refused: [unknown, unknown?][] = [
    [[]],
    [undefined],
    [[backend, backend]],
    [[backend, {}]],
    [[session]],
    [[backend], { driftFactor: 1 }],
    [[backend], { driftFactor: Number.NaN }],
    [[backend], { nodeTimeoutMs: 0 }],
  ];
  for (const [backends, options] of refused) {
    let thrown: unknown;
    try {
      quorumBackend(backends as LockBackend[], options as QuorumOptions);
    } catch (error) {
      thrown = error;
    }
    expect(isInvalid(thrown), JSON.stringify(options)).toBe(true);
  }
});

test('a quorum declares no token and no permits', async () => {
  const locks = createLocks(quorumBackend(nodesOf(3).map(({ backend }) => backend)));
  expect(() => locks.semaphore('a', 2)).toThrow(expect.objectContaining({ code: 'LOCK_UNSUPPORTED' }));
  const lease = await locks.lock('a').acquire();
  expect('fencingToken' in lease ? lease.fencingToken : undefined).toBeUndefined();
  await lease.release();
  await locks.close();
});

test('a lost vote is answered only when the minority is free again', async () => {
  const nodes = nodesOf(3);
  for (const { store } of nodes.slice(0, 2)) store.acquire(request('a'), false);
  const slow = nodes[2] as Node;
  const sound = slow.backend;
  slow.backend = delegate(sound, {
    async abandon(...args) {
      await new Promise((resolve) => setTimeout(resolve, 40));
      await sound.abandon(...args);
    },
  });
  expect((await quorumOf(nodes).attempt(request('a'), false, call)).status).toBe('contended');
  expect(slow.store.holders('a')).toEqual([]);
});

test('a node that granted and whose answer was lost is freed after a lost vote', async () => {
  const nodes = nodesOf(3);
  for (const { store } of nodes.slice(0, 2)) store.acquire(request('a'), false);
  const mute = nodes[2] as Node;
  const sound = mute.backend;
  mute.backend = delegate(sound, {
    async attempt(...args) {
      await sound.attempt(...args);
      return never;
    },
  });
  const quorum = quorumOf(nodes, { nodeTimeoutMs: 100 });
  expect((await quorum.attempt(request('a'), false, call)).status).toBe('contended');
  await settled(
    () => mute.store.holders('a'),
    (held) => held.length === 0,
  );
});

test('a lease and its renewal are as long as the second longest of three', async () => {
  const nodes = nodesOf(3).map(({ store, backend }, index) => {
    const validForMs = [200, 1_000, 5_000][index] as number;
    return {
      store,
      backend: delegate(backend, {
        async attempt(asked, enqueue, given) {
          const attempt = await backend.attempt(asked, enqueue, given);
          if (attempt.status !== 'granted') return attempt;
          return { status: 'granted', grant: { ...attempt.grant, validForMs } };
        },
        renew: async (items) => items.map(() => ({ status: 'held', validForMs })),
      }),
    };
  });
  const quorum = quorumOf(nodes);
  const startedAt = call.now();
  const attempt = await quorum.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error('not granted');
  const { grant } = attempt;
  const end = grant.countedFrom + (grant.validForMs ?? TTL_MS);
  // Two nodes may have answered before the third: then the shorter of their times counts.
  expect(end - startedAt).toBeLessThan(1_100);
  const [renewalStatus] = await quorum.renew([{ grant, ttlMs: TTL_MS }], call);
  expect(renewalStatus).toMatchObject({ status: 'held' });
  expect(renewalStatus?.status === 'held' && (renewalStatus.validForMs ?? TTL_MS)).toBeLessThan(500);
});

test('a release that a majority did not answer is no answer, and can be repeated', async () => {
  const nodes = nodesOf(3);
  let down = true;
  const quorum = quorumOf(
    nodes.map(({ store, backend }, index) => ({
      store,
      backend: delegate(backend, {
        release: (...args) =>
          down && index > 0 ? Promise.reject(new Error('down')) : backend.release(...args),
        isRetryable: () => true,
      }),
    })),
  );
  const attempt = await quorum.attempt(request('a'), false, call);
  if (attempt.status !== 'granted') throw new Error('not granted');
  const failure: unknown = await quorum.release(attempt.grant, call).catch((error: unknown) => error);
  expect(String(failure)).toMatch(/2 of 3 nodes failed to release/);
  expect(quorum.isRetryable(failure)).toBe(true);
  down = false;
  expect(await quorum.release(attempt.grant, call)).toBe('released');
  expect(holders(nodes, 'a')).toEqual([[], [], []]);
});

test('a client that holds on a minority only is not shown as a holder', async () => {
  const nodes = nodesOf(3);
  nodes[0]?.store.acquire(request('a'), false);
  const quorum = quorumOf(nodes);
  expect((await quorum.inspect('a', call)).holders).toEqual([]);
  const both = request('a');
  for (const { store } of nodes.slice(1)) store.acquire(both, false);
  expect((await quorum.inspect('a', call)).holders).toMatchObject([{ acquisitionId: both.acquisitionId }]);
});
