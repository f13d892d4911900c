import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { waitUntil } from '@locks/test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import { freeze } from '../src/fault-lab/fault-lab.ts';
import { failure, figure, grantOf, later, lossOf, untilWaiting, watched } from '../src/fault-lab/observe.ts';
import AdvisoryLab, {
  freshName,
  onServer,
  SESSION_MS,
  sharedServer,
  SLACK_MS,
  stopSharedServer,
  untilFree,
  untilQueued,
  CLAIM_MS,
} from './advisory-lab.ts';

afterAll(stopSharedServer);

describe.concurrent('what happens to the network and to other processes', { timeout: 60_000 }, () => {
  it("the holder's connection is cut: the loss is reported at once, and the waiter is in", async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near] = [lab.locks(proxy), lab.locks(server)];
    const lease = await far.lock(name).acquire();
    const lost = lossOf(lease);
    const entered = grantOf(near.lock(name).acquire());
    await untilWaiting(near, name);
    const startedAt = performance.now();
    proxy.cut();
    expect((await lost).reason).toBe('session-lost');
    expect((await lost).at - startedAt).toBeLessThan(SLACK_MS);
    const next = await entered;
    expect(next.at - startedAt).toBeLessThan(SLACK_MS);
    await next.lease.release();
    await (await far.lock(name).acquire()).release();
  });

  it("a waiter's connections are cut: it waits again, and gets in", async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near] = [lab.locks(proxy), lab.locks(server)];
    const lease = await near.lock(name).acquire();
    const entered = far.lock(name).acquire({ waitMs: 20_000 });
    await untilWaiting(near, name);
    proxy.cut();
    await untilWaiting(near, name);
    await lease.release();
    await (await entered).release();
    await untilFree(server, name);
  });

  it('a grant is swallowed by a blackhole of that one connection: the main one finds out, and the waiter gets in', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near] = [lab.locks(proxy), lab.locks(server)];
    await (await far.lock(`${name} warm`).acquire()).release();
    const [main] = proxy.connections();
    const lease = await near.lock(name).acquire();
    const entered = grantOf(far.lock(name).acquire({ waitMs: 30_000 }));
    await untilWaiting(near, name);
    const waiting = proxy.connections().find((connection) => connection !== main);
    expect(waiting).toBeDefined();
    proxy.blackhole({ only: (connection) => connection === waiting });
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    figure('a grant that was swallowed: in after', next.at - releasedAt);
    // The server ends the session that does not claim, and the main session asks for it.
    expect(next.at - releasedAt).toBeLessThan(CLAIM_MS + SESSION_MS / 3 + SLACK_MS);
    await next.lease.release();
    await untilFree(server, name);
  });

  it('a process that stands still holds until the server gives its session up; others see who it is, and its loss is reported when it goes on', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const locks = lab.locks(server);
    const worker = await lab.worker(server);
    const { id } = await worker.call.acquire(name);
    await freeze(worker);
    const frozenAt = performance.now();
    const entered = grantOf(locks.lock(name).acquire({ waitMs: 20_000 }));
    const { holders } = await locks.inspect(name);
    expect(holders).toMatchObject([{ acquisitionId: expect.stringMatching(/^pid-\d+$/) }]);
    expect(holders[0]?.label).toContain('does not answer');
    // What does not answer cannot be asked to give it back.
    expect(await failure(locks.forceRelease(name))).toMatchObject({ code: 'LOCK_BACKEND' });
    const next = await entered;
    figure(`holder stands still, session of ${SESSION_MS} ms: next one in after`, next.at - frozenAt);
    expect(next.at - frozenAt).toBeLessThan(SESSION_MS + SLACK_MS);
    worker.thaw();
    expect(await worker.call.loss(id)).toBe('session-lost');
    next.lease.assertValid();
    await next.lease.release();
  });

  it('a grant that reached a process which stood still, and is long withdrawn: it does not believe it', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [near, behind] = [lab.locks(server), lab.locks(server)];
    const lease = await near.lock(name).acquire();
    // Its sessions live through all this; only the claim runs out.
    const worker = await lab.worker(proxy, { sessionTimeoutMs: 15_000 });
    const late = watched(worker.call.acquire(name, { waitMs: 60_000 }));
    await untilWaiting(near, name);
    const entered = behind.lock(name).acquire({ waitMs: 20_000 });
    await untilWaiting(near, name, 2);
    await freeze(worker);
    await lease.release();
    // The grant is on its way to the process; that it is withdrawn is never heard of.
    await waitUntil(() => proxy.connections().length >= 2, { what: 'its connections' });
    await new Promise((resolve) => setTimeout(resolve, 300));
    proxy.blackhole();
    const next = await entered;
    worker.thaw();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(late.settled).toBe(false);
    next.assertValid();
    await next.release();
    await proxy.heal();
    await late.work;
  });

  it('a waiter whose wait was confirmed has its position, however slow its connection is', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [slow, quick] = [lab.locks(proxy), lab.locks(server)];
    await (await slow.lock(`${name} warm`).acquire()).release();
    const [main] = proxy.connections();
    const lease = await quick.lock(name).acquire();
    proxy.latency(150, { direction: 'toServer', only: (connection) => connection !== main });
    const order: string[] = [];
    let contended = false;
    const listen = (message: unknown) => {
      contended ||= (message as { name?: string }).name === name;
    };
    subscribe('locks:contended', listen);
    const first = slow.lock(name).run(() => void order.push('slow'));
    await waitUntil(() => contended, { what: 'the first attempt to be answered' });
    unsubscribe('locks:contended', listen);
    const second = lab.locks(server).lock(name);
    const then = second.run(() => void order.push('quick'));
    await untilWaiting(quick, name, 2);
    await lease.release();
    await Promise.all([first, then]);
    expect(order).toEqual(['slow', 'quick']);
  });

  it('a waiter that comes while its process is told slowly that nobody waits goes behind whoever came meanwhile', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const slow = lab.locks(proxy, { name: `slow ${name}` });
    const quick = lab.locks(server);
    // postgres.js describes a statement at its first use, in a round trip of its own.
    const first = await slow.lock(`${name} first`).acquire();
    const second = slow.lock(`${name} first`).run(() => undefined);
    await untilWaiting(slow, `${name} first`);
    await first.release();
    await second;
    const lease = await quick.lock(name).acquire();
    const order: string[] = [];
    const waitsFor = (locks: typeof slow, who: string) => locks.lock(name).run(() => void order.push(who));
    const turns = [waitsFor(slow, 'slow 1')];
    await untilWaiting(quick, name);
    proxy.latency(1_000, { direction: 'toClient' });
    turns.push(waitsFor(slow, 'slow 2'));
    const asked = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'slow ${name}' AND query LIKE 'WITH queue%'`;
    await waitUntil(async () => (await server.query(asked)).length > 0, { what: 'its question' });
    turns.push(waitsFor(quick, 'quick'));
    await untilQueued(server, name, 2);
    turns.push(waitsFor(slow, 'slow 3'));
    await proxy.heal();
    await untilQueued(server, name, 3);
    await lease.release();
    await Promise.all(turns);
    expect(order).toEqual(['slow 1', 'slow 2', 'quick', 'slow 3']);
  });

  it('a waiter that comes while its process is told slowly that it has the lock goes behind whoever came meanwhile', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [slow, quick] = [lab.locks(proxy), lab.locks(server)];
    await slow.ping();
    proxy.latency(1_000, { direction: 'toClient' });
    const holding = slow.lock(name).acquire();
    const isGranted = async () => (await onServer(server, name)).granted === 1;
    await waitUntil(isGranted, { what: 'the grant' });
    const order: string[] = [];
    const turns = [quick.lock(name).run(() => void order.push('quick'))];
    await untilQueued(server, name, 1);
    turns.push(slow.lock(name).run(() => void order.push('slow')));
    await proxy.heal();
    const lease = await holding;
    await untilQueued(server, name, 2);
    await lease.release();
    await Promise.all(turns);
    expect(order).toEqual(['quick', 'slow']);
  });

  it('a waiter whose turn comes while its process opens a slow connection for another is not passed over', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    // With a shorter session the connection would be given up before the claim runs out.
    const [slow, quick] = [lab.locks(proxy, { sessionTimeoutMs: 15_000 }), lab.locks(server)];
    const lease = await quick.lock(name).acquire();
    const order: string[] = [];
    const first = slow.lock(name).run(() => void order.push('first'));
    await untilWaiting(quick, name);
    const second = quick.lock(name).run(() => void order.push('second'));
    await untilWaiting(quick, name, 2);
    const known = proxy.connections();
    proxy.stall({ only: (connection) => !known.includes(connection) });
    // Behind another process: on a connection of its own.
    const third = slow.lock(name).run(() => void order.push('third'));
    await waitUntil(() => proxy.connections().length > known.length, { what: 'the connection' });
    await lease.release();
    await new Promise((resolve) => setTimeout(resolve, CLAIM_MS + 500));
    await proxy.heal();
    await Promise.all([first, second, third]);
    expect(order).toEqual(['first', 'second', 'third']);
  });

  it('a killed holder is gone at once, and so is a killed waiter, before its turn', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const locks = lab.locks(server);
    const [holder, waiter] = [await lab.worker(server), await lab.worker(server)];
    await holder.call.acquire(name);
    void later(waiter.call.acquire(name));
    await untilWaiting(locks, name);
    const entered = grantOf(locks.lock(name).acquire({ waitMs: 20_000 }));
    await untilWaiting(locks, name, 2);
    await waiter.kill();
    await untilWaiting(locks, name, 1);
    expect((await onServer(server, name)).granted).toBe(1);
    const killedAt = performance.now();
    await holder.kill();
    const next = await entered;
    figure('holder killed: next one in after', next.at - killedAt);
    expect(next.at - killedAt).toBeLessThan(SLACK_MS);
    await next.lease.release();
  });
});
