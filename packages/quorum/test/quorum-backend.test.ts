import { setTimeout as delay } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend, RenewalStatus } from '@locks/core/backend';
import { expect, onTestFinished, test, vi } from 'vitest';
import { quorumBackend, type QuorumOptions } from '../src/index.ts';
import { pass, rejectionOf, settled, useFakeClock } from '../../core/test/fixture.ts';
import {
  answerLater,
  capabilities,
  grant,
  noAnswer,
  scriptedBackend,
} from '../../core/test/scripted-backend.ts';

const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
const request: AcquireRequest = {
  resource: 'a',
  acquisitionId: 'mine',
  mode: { kind: 'exclusive' },
  ttlMs: 30_000,
};

interface Node extends LockBackend {
  holder: string | undefined;
}

/** A node with one resource, that does what the script says before it does its own. */
function nodeWith(script: Partial<LockBackend> = {}): Node {
  const node: Node = {
    ...scriptedBackend({
      capabilities: { ...capabilities, modes: ['exclusive', 'shared'] },
      attempt(asked, _enqueue, at) {
        node.holder ??= asked.acquisitionId;
        const mine = node.holder === asked.acquisitionId;
        return Promise.resolve<Attempt>(
          mine ? { status: 'granted', grant: grant(asked, at) } : { status: 'contended' },
        );
      },
      abandon(asked) {
        if (node.holder === asked.acquisitionId) node.holder = undefined;
        return Promise.resolve();
      },
      release(given) {
        const mine = node.holder === given.request.acquisitionId;
        if (mine) node.holder = undefined;
        return Promise.resolve(mine ? 'released' : 'not-held');
      },
      downgrade: () => Promise.resolve({ status: 'held' }),
    }),
    holder: undefined,
  };
  const own = { ...node };
  for (const [name, act] of Object.entries(script)) {
    Object.assign(node, { [name]: act });
  }
  return Object.assign(node, { own });
}

function sane(node: Node): LockBackend {
  return (node as Node & { own: LockBackend }).own;
}

/** What comes to the node comes in time, but its attempt is carried out only when the test says. */
function slowToAttempt(): { node: Node; carryOut: () => void; fail: () => void } {
  const { answer, give, fail } = answerLater<void>();
  let failing = false;
  const node = nodeWith({
    async attempt(...args) {
      await answer.catch(() => {
        failing = true;
      });
      const attempt = await sane(node).attempt(...args);
      if (failing) throw new Error('no reply');
      return attempt;
    },
  });
  return { node, carryOut: () => give(), fail: () => fail(new Error('lost')) };
}

function held(...holders: (string | undefined)[]): Node[] {
  return holders.map((holder) => Object.assign(nodeWith(), { holder }));
}

function quorumOf(nodes: readonly Node[], options?: QuorumOptions): LockBackend {
  return quorumBackend(nodes, options);
}

async function won(quorum: LockBackend): Promise<Grant> {
  const attempt = await quorum.attempt(request, false, call);
  if (attempt.status !== 'granted') throw new Error(attempt.status);
  return attempt.grant;
}

test.each(['release', 'abandon'] as const)('what a node grants after the %s is abandoned', async (how) => {
  const { node, carryOut } = slowToAttempt();
  const quorum = quorumOf([...held(undefined, undefined), node]);
  const lease = await won(quorum);
  // It arrives at the slow node before the attempt is carried out there.
  await (how === 'release' ? quorum.release(lease, call) : quorum.abandon(request, call));
  carryOut();
  await settled();
  expect(node.holder).toBeUndefined();
});

test('a node that granted and lost its reply, long after the vote was lost, gets an abandon', async () => {
  const { node, fail } = slowToAttempt();
  const quorum = quorumOf([...held('other', undefined), node], { nodeTimeoutMs: 20 });
  expect((await quorum.attempt(request, false, call)).status).toBe('contended');
  fail();
  await settled();
  expect(node.holder).toBeUndefined();
});

test('an abandon that is late does not take away what a later attempt of the same acquire got', async () => {
  // Its first abandon is on its way until the test lets it arrive.
  const arrive = answerLater<void>();
  let attempts = 0;
  let abandons = 0;
  const slow = nodeWith({
    attempt(...args) {
      attempts += 1;
      return attempts === 1 ? noAnswer<Attempt>() : sane(slow).attempt(...args);
    },
    async abandon(...args) {
      abandons += 1;
      if (abandons === 1) await arrive.answer;
      return sane(slow).abandon(...args);
    },
  });
  const nodes = [...held('other', undefined), slow];
  const locks = createLocks(quorumOf(nodes, { nodeTimeoutMs: 20 }));
  const lease = await locks.lock('a').acquire();
  arrive.give();
  await settled();
  expect(nodes.filter(({ holder }) => holder === lease.acquisitionId)).toHaveLength(2);
  await lease.release();
});

test('an attempt that is sent again after a lost vote counts no node on which the first is still abandoned', async () => {
  const late = answerLater<void>();
  let attempts = 0;
  const slow = nodeWith({
    async attempt(...args) {
      attempts += 1;
      const attempt = await sane(slow).attempt(...args);
      if (attempts === 1) await late.answer;
      return attempt;
    },
  });
  const nodes = [...held('other', 'third'), slow];
  const quorum = quorumOf(nodes);
  expect((await quorum.attempt(request, false, call)).status).toBe('contended');
  Object.assign(nodes[0] as Node, { holder: undefined });
  // As by a client that reconnected. Where this one is granted, no late answer to the first may take a node away again.
  const again = await quorum.attempt(request, false, call);
  late.give();
  await settled();
  const mine = nodes.filter(({ holder }) => holder === 'mine');
  expect(mine.length).toBeGreaterThanOrEqual(again.status === 'granted' ? 2 : 0);
});

test('an abandon is answered in time though a minority hangs', async () => {
  useFakeClock();
  const nodes = [...held('mine', 'mine'), nodeWith({ abandon: () => noAnswer<void>() })];
  let done = false;
  const abandoned = quorumOf(nodes)
    .abandon(request, { ...call, deadline: performance.now() + 350 })
    .then(() => (done = true));
  await pass(300);
  expect(done).toBe(true);
  await abandoned;
});

test.each<[string, Partial<Grant>]>([
  ['of another', { request: { ...request, acquisitionId: 'other' } }],
  ['that says no time', { countedFrom: Number.NaN }],
  ['from the future', { countedFrom: Number.MAX_SAFE_INTEGER }],
])('a node’s grant %s is no vote', async (_what, odd) => {
  const faulty = nodeWith({
    attempt: (asked, _enqueue, at) =>
      Promise.resolve<Attempt>({ status: 'granted', grant: grant(asked, at, odd) }),
  });
  expect((await quorumOf([...held(undefined, 'other'), faulty]).attempt(request, false, call)).status).toBe(
    'contended',
  );
});

test.each(['renew', 'downgrade'] as const)(
  '%s: a node that may still grant is not counted as one that does not hold',
  async (how) => {
    const lost: RenewalStatus = { status: 'lost', reason: 'taken-over' };
    const losing = nodeWith({ renew: () => Promise.resolve([lost]), downgrade: () => Promise.resolve(lost) });
    const { node: slow, carryOut } = slowToAttempt();
    const quorum = quorumOf([losing, ...held(undefined), slow]);
    const lease = await won(quorum);
    const renewalStatus = async () =>
      how === 'downgrade'
        ? quorum.downgrade?.(lease, call)
        : (await quorum.renew([{ grant: lease, ttlMs: 30_000 }], call))[0];
    expect(await renewalStatus()).toMatchObject({ status: 'unknown' });
    carryOut();
    await settled();
    expect(await renewalStatus()).toMatchObject({ status: 'held' });
  },
);

test('a node that did not answer the attempt in time counts as one that does not hold', async () => {
  const lost: RenewalStatus = { status: 'lost', reason: 'taken-over' };
  const losing = nodeWith({ renew: () => Promise.resolve([lost]) });
  const { node: slow } = slowToAttempt();
  const quorum = quorumOf([losing, ...held(undefined), slow], { nodeTimeoutMs: 20 });
  const lease = await won(quorum);
  await vi.waitFor(async () => {
    const [renewalStatus] = await quorum.renew([{ grant: lease, ttlMs: 30_000 }], call);
    expect(renewalStatus).toEqual(lost);
  });
});

test('nodes that answer a renewal with nothing leave it unknown', async () => {
  const dumb = () => nodeWith({ renew: () => Promise.resolve([]) });
  const quorum = quorumOf([dumb(), dumb(), nodeWith()]);
  const lease = await won(quorum);
  const renewalStatuses = await quorum.renew([{ grant: lease, ttlMs: 30_000 }], call);
  expect(renewalStatuses[0]?.status).toBe('unknown');
  const silent = () => nodeWith({ downgrade: () => Promise.resolve(undefined as unknown as RenewalStatus) });
  const other = quorumOf([silent(), silent(), nodeWith()]);
  expect((await other.downgrade?.(await won(other), call))?.status).toBe('unknown');
});

test('nodes whose methods throw at once count as failed', async () => {
  const broken = (): Node => {
    const act = (): never => {
      throw new Error('broken');
    };
    return nodeWith({ attempt: act, abandon: act, release: act, renew: act, inspect: act, close: act });
  };
  const closed: string[] = [];
  const last = nodeWith({
    close: () => {
      closed.push('last');
      return Promise.resolve();
    },
  });
  const quorum = quorumOf([broken(), nodeWith(), last]);
  const lease = await won(quorum);
  expect((await quorum.renew([{ grant: lease, ttlMs: 30_000 }], call))[0]?.status).toBe('held');
  expect(await quorum.release(lease, call)).toBe('released');
  await quorum.abandon(request, call);
  await expect(quorumOf([broken(), broken(), nodeWith()]).attempt(request, false, call)).rejects.toThrow(
    '2 of 3 nodes failed to acquire',
  );
  await expect(quorum.close()).rejects.toThrow('broken');
  expect(closed).toEqual(['last']);
});

test('a call that is over before it began asks nobody', async () => {
  const asked: string[] = [];
  const note = (): Node =>
    nodeWith({
      attempt: () => {
        asked.push('attempt');
        return noAnswer();
      },
    });
  const quorum = quorumOf([note(), note(), note()]);
  const over = { ...call, signal: AbortSignal.abort() };
  await expect(quorum.attempt(request, false, over)).rejects.toThrow(/gave up/);
  expect(asked).toEqual([]);
});

test('many waiters of one process ask the nodes no more often than one', async () => {
  let asked = 0;
  const busy = (): Node =>
    nodeWith({
      attempt: () => {
        asked += 1;
        return Promise.resolve<Attempt>({ status: 'contended' });
      },
    });
  const locks = createLocks(quorumOf([busy(), busy(), busy()]));
  onTestFinished(() => locks.close());
  const waiting = Array.from({ length: 50 }, () => rejectionOf(locks.lock('a').acquire({ waitMs: 400 })));
  await settled();
  expect(asked).toBe(150);
  const from = performance.now();
  await vi.waitUntil(() => asked >= 150 + 15, { timeout: 20_000, interval: 5 });
  // One attempt of three calls every 20 to 50 ms, a fifth less at the earliest.
  expect(asked - 150).toBeLessThanOrEqual(3 * (1 + (performance.now() - from) / 16));
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['LOCK_TIMEOUT']));
});

test('a release waits for as long as the slowest node needs, and an answer to an earlier sending counts', async () => {
  const slow = (): Node => {
    const node = nodeWith({
      async release(given, at) {
        // Longer than core's own budget, and than the time between two sendings.
        await delay(1_200);
        return sane(node).release(given, at);
      },
    });
    return Object.assign(node, { releaseBudgetMs: 3_000 });
  };
  const quorum = quorumOf([slow(), slow(), nodeWith()], { nodeTimeoutMs: 3_000 });
  expect(quorum.releaseBudgetMs).toBe(3_000);
  expect(quorumOf(held('other', 'other', 'other')).releaseBudgetMs).toBeUndefined();
  const lease = await createLocks(quorum).lock('a').acquire();
  expect(await rejectionOf(lease.release())).toBe('fulfilled');
});

test('a holder is shown though one of just the majority that granted does not answer', async () => {
  const holding = (): Node =>
    nodeWith({
      inspect: (resource) =>
        Promise.resolve({
          name: resource,
          holders: [{ acquisitionId: 'mine', mode: request.mode }],
          waiters: [],
        }),
    });
  const down = nodeWith({ inspect: () => Promise.reject(new Error('down')) });
  const shown = (nodes: Node[]) => quorumOf(nodes).inspect('a', call);
  expect((await shown([holding(), down, nodeWith()])).holders).toMatchObject([{ acquisitionId: 'mine' }]);
  // All answered: a minority holds nothing.
  expect((await shown([holding(), nodeWith(), nodeWith()])).holders).toEqual([]);
});

test('close waits for abandons in the background, and no longer than a node may take', async () => {
  const order: string[] = [];
  const slow = nodeWith({
    attempt: () => noAnswer(),
    async abandon() {
      await delay(30);
      order.push('abandoned');
    },
    close() {
      order.push('closed');
      return Promise.resolve();
    },
  });
  const quorum = quorumOf([...held('other', undefined), slow], { nodeTimeoutMs: 50 });
  await quorum.attempt(request, false, call);
  await quorum.close();
  expect(order).toEqual(['abandoned', 'closed']);
  const hung = nodeWith({ attempt: () => noAnswer(), abandon: () => noAnswer<void>() });
  const other = quorumOf([...held('other', undefined), hung], { nodeTimeoutMs: 20 });
  await other.attempt(request, false, call);
  await other.close();
});

test('no node is called after close, also when one grants late', async () => {
  const { answer, give } = answerLater<void>();
  let isClosed = false;
  const late: string[] = [];
  const slow = nodeWith({
    attempt: (asked, _enqueue, at) => answer.then(() => ({ status: 'granted', grant: grant(asked, at) })),
    abandon: async () => void (isClosed && late.push('abandon')),
  });
  const rival = (): Node => nodeWith({ attempt: () => Promise.resolve({ status: 'contended' }) });
  const quorum = quorumBackend([slow, rival(), rival()]);
  expect((await quorum.attempt(request, false, call)).status).toBe('contended');
  await quorum.close();
  isClosed = true;
  give();
  await settled();
  expect(late).toEqual([]);
});

test('the margin of a quorum is the largest of its nodes', () => {
  const withMargin = (ttl: { readonly marginMs?: number }): LockBackend =>
    scriptedBackend({ capabilities: { ...capabilities, ttl: { ...capabilities.ttl, ...ttl } } });
  const marginOf = (...margins: readonly { readonly marginMs?: number }[]) =>
    quorumBackend(margins.map(withMargin)).capabilities.ttl.marginMs;
  expect(marginOf({}, { marginMs: 2_000 }, { marginMs: 4_000 })).toBe(4_000);
  expect(marginOf({}, {}, {})).toBeUndefined();
});

test('a quorum prepares all its nodes, and names those that failed', async () => {
  const prepared: string[] = [];
  const node = (name: string, error?: Error) =>
    scriptedBackend({
      name,
      prepare: () => {
        prepared.push(name);
        return error === undefined ? Promise.resolve() : Promise.reject(error);
      },
    });
  const without = scriptedBackend();
  await createLocks(quorumBackend([node('a'), node('b'), without])).prepare();
  expect(prepared).toEqual(['a', 'b']);
  const locks = createLocks(quorumBackend([node('a'), node('b', new Error('no right to create')), without]));
  await expect(locks.prepare()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    message: expect.stringContaining('1 of 3 nodes failed to prepare: b: no right to create'),
  });
});
