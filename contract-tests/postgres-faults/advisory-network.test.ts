import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { waitUntil } from '@locks/test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import {
  entry,
  failure,
  figure,
  freeze,
  freshName,
  Lab,
  lossOf,
  onServer,
  SESSION_MS,
  sharedServer,
  SLACK_MS,
  stopSharedServer,
  untilFree,
  untilWaiting,
} from './advisory-lab.ts';

/** How long the server waits for whoever it grants a lock to after a wait. */
const CLAIM_MS = 2_000;

afterAll(stopSharedServer);

describe.concurrent('what happens to the network and to other processes', { timeout: 60_000 }, () => {
  it("the holder's connection is cut: told at once, and the waiter is in", async () => {
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near] = [lab.locks(proxy), lab.locks(server)];
    const lease = await far.lock(name).acquire();
    const lost = lossOf(lease);
    const entered = entry(near.lock(name).acquire());
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

  it("a blackhole of the holder's connection: told before anyone else is in, who is in when the server gives it up", async () => {
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near] = [lab.locks(proxy), lab.locks(server)];
    const lease = await far.lock(name).acquire();
    const lost = lossOf(lease);
    const entered = entry(near.lock(name).acquire());
    await untilWaiting(near, name);
    const startedAt = performance.now();
    proxy.blackhole();
    const { reason, at } = await lost;
    expect(reason).toBe('session-lost');
    const next = await entered;
    expect(at).toBeLessThan(next.at);
    expect(next.at - startedAt).toBeLessThan(SESSION_MS + SLACK_MS);
    figure(`holder in a blackhole, session of ${SESSION_MS} ms: told after`, at - startedAt);
    figure(`holder in a blackhole, session of ${SESSION_MS} ms: next one in after`, next.at - startedAt);
    await next.lease.release();
    await proxy.heal();
    await (await far.lock(name).acquire()).release();
  });

  it("a waiter's connections are cut: it waits again, and gets in", async () => {
    await using lab = new Lab();
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

  it('a blackhole of a waiter whose turn comes: those behind it wait no longer than the claim; it fails in time, and leaves nothing', async () => {
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near, behind] = [lab.locks(proxy), lab.locks(server), lab.locks(server)];
    const lease = await near.lock(name).acquire();
    const startedAt = performance.now();
    const swallowed = failure(far.lock(name).acquire({ waitMs: 7_000 }));
    await untilWaiting(near, name);
    const entered = entry(behind.lock(name).acquire({ waitMs: 20_000 }));
    await untilWaiting(near, name, 2);
    proxy.blackhole();
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    figure('first waiter in a blackhole: next one in after', next.at - releasedAt);
    expect(next.at - releasedAt).toBeLessThan(CLAIM_MS + SLACK_MS);
    expect(await swallowed).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(performance.now() - startedAt).toBeLessThan(7_000 + SLACK_MS);
    await next.lease.release();
    await proxy.heal();
    await untilFree(server, name);
    await (await far.lock(name).acquire({ waitMs: 10_000 })).release();
  });

  it('a grant is swallowed by a blackhole of that one connection: the main one finds out, and the waiter gets in', async () => {
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [far, near] = [lab.locks(proxy), lab.locks(server)];
    await (await far.lock(`${name} warm`).acquire()).release();
    const [main] = proxy.connections();
    const lease = await near.lock(name).acquire();
    const entered = entry(far.lock(name).acquire({ waitMs: 30_000 }));
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

  it('a process that stands still holds until the server gives its session up; others see who it is, and it is told when it goes on', async () => {
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const locks = lab.locks(server);
    const child = await lab.process(server, name);
    const told = once(child, 'message');
    await freeze(child);
    const frozenAt = performance.now();
    const entered = entry(locks.lock(name).acquire({ waitMs: 20_000 }));
    const { holders } = await locks.inspect(name);
    expect(holders).toMatchObject([{ acquisitionId: expect.stringMatching(/^pid-\d+$/) }]);
    expect(holders[0]?.label).toContain('does not answer');
    // What does not answer cannot be asked to give it back.
    expect(await failure(locks.forceRelease(name))).toMatchObject({ code: 'LOCK_BACKEND' });
    const next = await entered;
    figure(`holder stands still, session of ${SESSION_MS} ms: next one in after`, next.at - frozenAt);
    expect(next.at - frozenAt).toBeLessThan(SESSION_MS + SLACK_MS);
    child.kill('SIGCONT');
    expect(await told).toEqual(['lost: session-lost', undefined]);
    next.lease.assertValid();
    await next.lease.release();
  });

  it('a grant that reached a process which stood still, and is long withdrawn: it does not believe it', async () => {
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const proxy = await lab.proxy(server);
    const [near, behind] = [lab.locks(server), lab.locks(server)];
    const lease = await near.lock(name).acquire();
    // Its sessions live through all this; only the claim runs out.
    const child = await lab.process(proxy, name, true, 15_000);
    await untilWaiting(near, name);
    const entered = behind.lock(name).acquire({ waitMs: 20_000 });
    await untilWaiting(near, name, 2);
    const told = once(child, 'message');
    await freeze(child);
    await lease.release();
    // The grant is on its way to the process; that it is withdrawn is never heard of.
    await waitUntil(() => proxy.connections().length >= 2, { what: 'its connections' });
    await new Promise((resolve) => setTimeout(resolve, 300));
    proxy.blackhole();
    const next = await entered;
    child.kill('SIGCONT');
    const silence = new Promise((resolve) => setTimeout(resolve, 1_000, 'nothing'));
    expect(await Promise.race([told, silence])).toBe('nothing');
    next.assertValid();
    await next.release();
    await proxy.heal();
    expect(await told).toEqual(['holds', undefined]);
  });

  it('whoever was told to wait has its place, however slow its connection is', async () => {
    await using lab = new Lab();
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
      contended ||= (message as { resource?: string }).resource === name;
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

  it('a waiter whose turn comes while its process opens a slow connection for another is not passed over', async () => {
    await using lab = new Lab();
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
    await using lab = new Lab();
    const server = await sharedServer();
    const name = freshName();
    const locks = lab.locks(server);
    const [holder, waiter] = [await lab.process(server, name), await lab.process(server, name, true)];
    await untilWaiting(locks, name);
    const entered = entry(locks.lock(name).acquire({ waitMs: 20_000 }));
    await untilWaiting(locks, name, 2);
    waiter.kill('SIGKILL');
    await untilWaiting(locks, name, 1);
    expect((await onServer(server, name)).granted).toBe(1);
    holder.kill('SIGKILL');
    const killedAt = performance.now();
    const next = await entered;
    figure('holder killed: next one in after', next.at - killedAt);
    expect(next.at - killedAt).toBeLessThan(SLACK_MS);
    await next.lease.release();
  });
});
