import { describe, expect, it } from 'vitest';
import {
  acquire,
  call,
  callFor,
  freshPrefix,
  open,
  request,
  statementsSoFar,
  take,
  until,
  useServer,
} from './fixture.ts';
import { heldPool } from './held-pool.ts';

useServer();

describe('the number of statements', () => {
  it('is one statement to acquire and one to release, also for a name that is new', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    const warm = await take(backend, request('warm'));
    await backend.release(warm, call);
    const before = await statementsSoFar();
    for (let index = 0; index < 20; index += 1) {
      const grant = await take(backend, request(index % 2 === 0 ? 'same' : `new ${index}`));
      await backend.release(grant, call);
    }
    expect((await statementsSoFar()) - before).toBe(40);
  });

  it('is two statements to take several at once, whether they are free or not', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    await take(backend, request('warm'));
    const before = await statementsSoFar();
    expect(await backend.attemptMany?.([request('a'), request('b')], call)).toHaveLength(2);
    expect(await backend.attemptMany?.([request('b'), request('c')], call)).toBeUndefined();
    expect((await statementsSoFar()) - before).toBe(4);
  });

  it('is one statement for a hand-off inside a process, whatever the number of waiters', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    let holder = await take(backend, request('a'));
    const waits = Array.from({ length: 30 }, () => acquire(backend, request('a')));
    await until(async () => (await backend.inspect('a', call)).waiters.length === 30);
    const before = await statementsSoFar();
    const startedAt = performance.now();
    for (const wait of waits) {
      await backend.release(holder, call);
      holder = await wait;
    }
    // The poller looks beside them, oftener after a change; two for each hand-off would be sixty.
    const looks = 8 + Math.ceil((performance.now() - startedAt) / 100);
    expect((await statementsSoFar()) - before).toBeLessThanOrEqual(30 + looks);
    await backend.release(holder, call);
  });

  it('is one statement to renew two hundred leases', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    const wanted = Array.from({ length: 200 }, (_, index) => request(`lock ${index}`));
    const grants = await Promise.all(wanted.map((each) => take(backend, each)));
    for (let round = 0; round < 2; round += 1) {
      const before = await statementsSoFar();
      const renewalStatuses = await backend.renew(
        grants.map((grant) => ({ grant, ttlMs: 20_000 })),
        call,
      );
      expect(renewalStatuses.every(({ status }) => status === 'held')).toBe(true);
      expect((await statementsSoFar()) - before).toBe(1);
    }
    const { holders } = await backend.inspect('lock 7', call);
    expect(holders[0]?.expiresInMs).toBeGreaterThan(15_000);
  });

  it('is at most two statements a second while forty of a process wait for long', async () => {
    const tablePrefix = freshPrefix();
    const [holder, backend] = [open({ tablePrefix }), open({ tablePrefix })];
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) await take(holder, request(name, { ttlMs: 60_000 }));
    const waits = Array.from({ length: 40 }, (_, index) =>
      acquire(backend, request(names[index % 4] as string), callFor(6_500)).catch(() => undefined),
    );
    // The first looks are quick.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const before = await statementsSoFar();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const after = await statementsSoFar();
    expect(after - before).toBeLessThanOrEqual(6 + 1);
    expect(after - before).toBeGreaterThanOrEqual(3);
    await Promise.all(waits);
  });

  it('is at most three writes for a lock that goes from process to process: to queue, to take, to release', async () => {
    const tablePrefix = freshPrefix();
    const pools = Array.from({ length: 4 }, () => heldPool());
    const backends = pools.map(({ pool }) => open({ tablePrefix, pool }));
    for (const backend of backends) await backend.release(await take(backend, request('warm')), call);
    for (const { sent } of pools) sent.splice(0);
    let acquired = 0;
    const worker = async (backend: ReturnType<typeof open>): Promise<void> => {
      while (acquired < 300) {
        const grant = await acquire(backend, request('a'), callFor(30_000));
        acquired += 1;
        await new Promise((resolve) => setTimeout(resolve, 1));
        await backend.release(grant, call);
      }
    };
    await Promise.all(backends.flatMap((backend) => Array.from({ length: 8 }, () => worker(backend))));
    const writes = pools.flatMap(({ sent }) => sent.filter((each) => each.startsWith('UPDATE')));
    expect(writes.length / acquired).toBeLessThanOrEqual(3);
  });
});
