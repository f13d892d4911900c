import { freePort } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { failure, figure, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

const SLACK_MS = 1_500;

describe.concurrent('a cluster of three', { timeout: 60_000 }, () => {
  it('goes on when its leader is killed: the lease is renewed, the waiter keeps its position', async () => {
    await using lab = new Lab();
    const cluster = await lab.cluster();
    const [holder, waiter] = [lab.locks(cluster.hosts, { ttlMs: 6_000 }), lab.locks(cluster.hosts)];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 30_000 });
    await untilWaiting(holder, 'a');
    const leader = await cluster.leader();
    await leader.kill();
    await cluster.waitForNewLeader(leader);
    await lease.renew();
    lease.assertValid();
    const releasedAt = performance.now();
    await lease.release();
    const next = await entered;
    figure('a hand-off after the leader was killed', performance.now() - releasedAt);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
  });

  it('renews also where two of the hosts that it was given are dead', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const dead = await Promise.all([freePort(), freePort()]);
    const hosts = [...dead.map((port) => `http://127.0.0.1:${port}`), etcd.url];
    for (let client = 0; client < 20; client += 1) {
      // The first keep-alive of a client goes to any host.
      const lease = await lab
        .locks(hosts, { ttlMs: 20_000 })
        .lock(`lock ${client}`)
        .acquire({ waitMs: 5_000 });
      await lease.renew();
    }
  });

  it('without a quorum it grants nothing and reports losses in time; with one it goes on', async () => {
    await using lab = new Lab();
    const cluster = await lab.cluster();
    const holder = lab.locks(cluster.hosts, { ttlMs: 3_000 });
    const other = lab.locks(cluster.hosts);
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    const [, second, third] = cluster.members;
    await Promise.all([second?.kill(), third?.kill()]);
    const killedAt = performance.now();
    const refused = await failure(other.lock('b').acquire({ waitMs: 1_500 }));
    expect(refused.code).toBe('LOCK_BACKEND');
    expect(performance.now() - killedAt).toBeLessThan(1_500 + SLACK_MS);
    expect((await lost).reason).toBe('unconfirmed');
    expect((await lost).at - killedAt).toBeLessThan(3_000 + SLACK_MS);
    await Promise.all([second?.restart(), third?.restart()]);
    const regainedAt = performance.now();
    const next = await other.lock('a').acquire({ waitMs: 20_000 });
    figure('the next one after the quorum was regained (ttl 3 s)', performance.now() - regainedAt);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
  });

  it.each([1_200, 2_500, 5_000])(
    'a leader that stood still for %i ms, and answers its client from what it remembers, makes no two holders',
    async (frozenMs) => {
      await using lab = new Lab();
      const cluster = await lab.cluster();
      const leader = await cluster.leader();
      const others = cluster.members.filter((member) => member !== leader).map(({ url }) => url);
      const holder = lab.locks(leader.url, { ttlMs: 3_000 });
      const waiter = lab.locks(others);
      const lease = await holder.lock('a').acquire();
      const lost = lossOf(lease).then(({ at }) => at);
      const entered = waiter
        .lock('a')
        .acquire({ waitMs: 30_000 })
        .then((next) => ({ next, at: performance.now() }));
      await untilWaiting(waiter, 'a');
      await leader.pause();
      const wake = setTimeout(() => leader.resume(), frozenMs);
      // In time for a renewal, or not: either way it holds until its loss is reported, or it releases.
      const held = new Promise<number>((resolve) =>
        setTimeout(() => resolve(performance.now()), frozenMs + 3_000),
      );
      const endedAt = await Promise.race([lost, held.then((at) => (lease.signal.aborted ? lost : at))]);
      if (!lease.signal.aborted) await lease.release();
      const { next, at } = await entered;
      clearTimeout(wake);
      expect(at).toBeGreaterThan(endedAt);
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
      await next.release();
    },
  );
});
