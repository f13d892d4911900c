import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '@locks/core/backend';
import { expect, test } from 'vitest';
import { quorumBackend } from '../src/index.ts';
import { settled } from '../../core/test/fixture.ts';
import { answerLater, capabilities, grant, scriptedBackend } from '../../core/test/scripted-backend.ts';

const TTL_MS = 30_000;
const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
const request: AcquireRequest = {
  resource: 'a',
  acquisitionId: 'mine',
  mode: { kind: 'exclusive' },
  ttlMs: TTL_MS,
};

/** A store with one resource. A grant that it has forgotten is not confirmed, also when its id holds again by another. */
class Store {
  holder: Grant | undefined;
  /** What a renewal says is left. */
  validForMs = TTL_MS;
  readonly asked: AcquireRequest[] = [];
  /** Attempts are answered when this is; a renewal too, where it is slow. */
  until: Promise<void> = Promise.resolve();
  isSlow = false;
  isBroken = false;
  /** Attempts are carried out, but not answered before this is. */
  after: Promise<void> = Promise.resolve();
  /** Releases are carried out when this is. */
  untilRelease: Promise<void> = Promise.resolve();

  readonly backend: LockBackend = scriptedBackend({
    capabilities: { ...capabilities, modes: ['exclusive', 'shared'] },
    downgrade: async (given) =>
      given === this.holder ? { status: 'held' } : { status: 'lost', reason: 'force-released' },
    attempt: async (asked, _enqueue, at): Promise<Attempt> => {
      this.asked.push(asked);
      await this.until;
      if (asked.steal) this.holder = undefined;
      this.holder ??= grant(asked, at);
      await this.after;
      const { acquisitionId } = this.holder.request;
      return acquisitionId === asked.acquisitionId
        ? { status: 'granted', grant: this.holder }
        : { status: 'contended' };
    },
    renew: async (items) => {
      if (this.isBroken) throw new Error('down');
      if (this.isSlow) await this.until;
      return items.map(({ grant: given }) =>
        given === this.holder
          ? { status: 'held', validForMs: this.validForMs }
          : { status: 'lost', reason: 'force-released' },
      );
    },
    abandon: async ({ acquisitionId }) => {
      if (this.holder?.request.acquisitionId === acquisitionId) this.holder = undefined;
    },
    release: async (given) => {
      await this.untilRelease;
      if (given !== this.holder) return 'not-held';
      this.holder = undefined;
      return 'released';
    },
  });

  get id(): string | undefined {
    return this.holder?.request.acquisitionId;
  }

  /** It restarts without its data. */
  forget(): void {
    this.holder = undefined;
  }

  giveTo(acquisitionId: string): void {
    this.holder = grant({ ...request, acquisitionId }, call);
  }
}

async function held(wanted = request, stores = [new Store(), new Store(), new Store()]) {
  const quorum = quorumBackend(stores.map(({ backend }) => backend));
  const attempt = await quorum.attempt(wanted, false, call);
  if (attempt.status !== 'granted') throw new Error(attempt.status);
  await settled();
  const lease = attempt.grant;
  const renew = async () => {
    const [renewalStatus] = await quorum.renew([{ grant: lease, ttlMs: TTL_MS }], call);
    await settled();
    return renewalStatus;
  };
  const [a, b, c] = stores as [Store, Store, Store];
  return { quorum, lease, renew, a, b, c };
}

test.each(['first', 'last'] as const)(
  'a node that came back empty is acquired again, and after one more renewal another one may fail: it answers %s',
  async (order) => {
    const { renew, a, b, c } = await held();
    a.forget();
    const { answer, give } = answerLater<void>();
    if (order === 'last') Object.assign(a, { until: answer, isSlow: true });
    const renewed = renew();
    await settled();
    give();
    expect(await renewed).toMatchObject({ status: 'held' });
    await settled();
    expect([a.id, b.id, c.id]).toEqual(['mine', 'mine', 'mine']);
    expect(await renew()).toMatchObject({ status: 'held' });
    b.forget();
    expect(await renew()).toMatchObject({ status: 'held' });
    expect(b.id).toBe('mine');
  },
);

test('so is one that answers right behind the majority', async () => {
  const { renew, c } = await held();
  c.forget();
  await renew();
  expect(c.id).toBe('mine');
});

test('so is one that was away when the others granted', async () => {
  const { renew, a, b, c } = await held();
  a.forget();
  a.giveTo('other');
  await renew();
  expect(a.id).toBe('other');
  a.forget();
  await renew();
  await renew();
  b.forget();
  expect(await renew()).toMatchObject({ status: 'held' });
  expect(c.id).toBe('mine');
});

test('it does not count before a majority without it has confirmed the lease once more', async () => {
  const { renew, a, b } = await held();
  a.forget();
  expect(await renew()).toMatchObject({ status: 'held' });
  expect(a.id).toBe('mine');
  // It was lost perhaps before the first node was acquired again: for a moment a rival could have had both.
  b.forget();
  expect(await renew()).toMatchObject({ status: 'lost' });
  // Nothing is left of it where nobody else knows of it.
  expect([a.id, b.id]).toEqual([undefined, undefined]);
});

test('a renewal that was sent before a node was acquired again confirms nothing for it', async () => {
  const { renew, a, b, c } = await held();
  a.forget();
  await renew();
  const { answer, give } = answerLater<void>();
  for (const store of [b, c]) Object.assign(store, { until: answer, isSlow: true });
  const earlier = renew();
  for (const store of [b, c]) store.isSlow = false;
  a.forget();
  expect(await renew()).toMatchObject({ status: 'held' });
  expect(a.id).toBe('mine');
  give();
  expect(await earlier).toMatchObject({ status: 'held' });
  b.forget();
  expect(await renew()).toMatchObject({ status: 'lost' });
});

test('a late answer about the grant before makes nobody ask again', async () => {
  const { renew, a } = await held();
  const { answer, give } = answerLater<void>();
  Object.assign(a, { until: answer, isSlow: true });
  await renew();
  Object.assign(a, { until: Promise.resolve(), isSlow: false });
  a.forget();
  await renew();
  expect(a.id).toBe('mine');
  give();
  await settled();
  expect(a.asked).toHaveLength(2);
});

test('a release does not count it either', async () => {
  const { quorum, lease, renew, a, b } = await held();
  a.forget();
  await renew();
  b.forget();
  expect(await quorum.release(lease, call)).toBe('not-held');
  expect(a.id).toBeUndefined();
});

test('nor does a downgrade', async () => {
  const { quorum, lease, renew, a, b } = await held();
  a.forget();
  await renew();
  b.forget();
  expect(await quorum.downgrade?.(lease, call)).toMatchObject({ status: 'lost' });
});

test('what it granted is abandoned by the release, also where the answer to that was lost', async () => {
  const { quorum, lease, renew, a } = await held();
  a.forget();
  const { answer, fail } = answerLater<void>();
  a.after = answer;
  await renew();
  expect(a.id).toBe('mine');
  fail(new Error('no reply'));
  await settled();
  expect(await quorum.release(lease, call)).toBe('released');
  await settled();
  expect(a.id).toBeUndefined();
});

test('it makes no lease longer', async () => {
  const { renew, a, b, c } = await held();
  a.forget();
  await renew();
  Object.assign(a, { validForMs: 20_000 });
  Object.assign(b, { validForMs: 10_000 });
  Object.assign(c, { validForMs: 5_000, isSlow: true });
  const renewalStatus = await renew();
  expect(renewalStatus).toMatchObject({ status: 'held' });
  expect(renewalStatus?.status === 'held' && renewalStatus.validForMs).toBeLessThan(5_000);
});

test('a lease that most nodes have lost is not made again on any', async () => {
  const { renew, a, b, c } = await held();
  for (const store of [a, b, c]) {
    store.forget();
    store.asked.length = 0;
  }
  expect(await renew()).toMatchObject({ status: 'lost' });
  expect([a, b, c].flatMap(({ asked }) => asked)).toEqual([]);
});

test('nor is one of which nothing is known', async () => {
  const { renew, a, b } = await held();
  a.forget();
  b.isBroken = true;
  expect(await renew()).toMatchObject({ status: 'unknown' });
  expect(a.id).toBeUndefined();
});

test('who holds on that node meanwhile keeps it, also where the lease was stolen', async () => {
  const { renew, a } = await held({ ...request, steal: true });
  a.giveTo('other');
  expect(await renew()).toMatchObject({ status: 'held' });
  expect(a.asked).toHaveLength(2);
  expect(a.id).toBe('other');
});

test('what the node grants after the release is abandoned', async () => {
  const { quorum, lease, renew, a } = await held();
  a.forget();
  const { answer, give } = answerLater<void>();
  a.until = answer;
  expect(await renew()).toMatchObject({ status: 'held' });
  // Nobody asks twice at once.
  expect(await renew()).toMatchObject({ status: 'held' });
  expect(a.asked).toHaveLength(2);
  expect(await quorum.release(lease, call)).toBe('released');
  give();
  await settled();
  expect(a.id).toBeUndefined();
});

test('nor is it asked once the lease was released', async () => {
  const { quorum, lease, renew, a } = await held();
  a.forget();
  const { answer, give } = answerLater<void>();
  Object.assign(a, { until: answer, isSlow: true });
  expect(await renew()).toMatchObject({ status: 'held' });
  await quorum.release(lease, call);
  give();
  await settled();
  expect(a.asked).toHaveLength(1);
});

test('nor keeps what it grants after the lease was lost', async () => {
  const { renew, a, b, c } = await held();
  a.forget();
  const { answer, give } = answerLater<void>();
  a.until = answer;
  await renew();
  b.forget();
  c.forget();
  expect(await renew()).toMatchObject({ status: 'lost' });
  give();
  await settled();
  expect(a.id).toBeUndefined();
});

test('a renewal that finds most nodes released takes nothing from the release of a slow one', async () => {
  const { quorum, lease, renew, a, b, c } = await held();
  b.forget();
  const [renewal, slowRelease] = [answerLater<void>(), answerLater<void>()];
  for (const store of [a, c]) Object.assign(store, { until: renewal.answer, isSlow: true });
  a.untilRelease = slowRelease.answer;
  const renewed = renew();
  const released = quorum.release(lease, call);
  await settled();
  expect(c.id).toBeUndefined();
  renewal.give();
  expect(await renewed).toMatchObject({ status: 'lost' });
  slowRelease.give();
  expect(await released).toBe('released');
  expect(a.id).toBeUndefined();
});

test('a renewal by another instance, which has no grants of the nodes, leaves the lease as it is', async () => {
  const { lease, renew, a, b, c } = await held();
  const { request: wanted, countedFrom } = structuredClone({ request: lease.request, countedFrom: 0 });
  const other = quorumBackend([a, b, c].map(({ backend }) => backend));
  const item = { grant: { request: wanted, countedFrom }, ttlMs: TTL_MS };
  expect(await other.renew([item], call)).toMatchObject([{ status: 'unknown' }]);
  await settled();
  expect([a.id, b.id, c.id]).toEqual(['mine', 'mine', 'mine']);
  expect(await renew()).toMatchObject({ status: 'held' });
});
