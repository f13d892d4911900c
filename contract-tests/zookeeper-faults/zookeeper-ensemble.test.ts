import { setTimeout as sleep } from 'node:timers/promises';
import { startZookeeperEnsemble, type ZooKeeperEnsemble, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminClient } from '../src/administration/zookeeper.ts';
import { nativeLibrary } from '../src/harnesses/zookeeper/native-library.ts';
import { figure, grantOf, lossOf, watched } from '../src/fault-lab/observe.ts';
import Lab, { SESSION_MS, untilQueued } from './lab.ts';

// One ensemble, hurt by one test after another.
let ensemble: ZooKeeperEnsemble;

beforeAll(async () => {
  // The first time it is compiled, which takes minutes on a busy machine.
  await nativeLibrary();
  ensemble = await startZookeeperEnsemble({ partitionable: true });
}, 400_000);

afterAll(async () => {
  await ensemble.stop();
});

test.each(['node-zookeeper-client', 'zookeeper'])(
  'with the follower of a holder frozen, its lease is lost before another gets the lock (%s)',
  async (client) => {
    await using lab = new Lab();
    const [follower, leader] = [await ensemble.follower(), await ensemble.leader()];
    const name = `frozen-${client}`;
    const holders = client === 'zookeeper' ? await lab.native(follower) : lab.locks(follower);
    const a = await holders.lock(name).acquire();
    const next = grantOf(lab.locks(leader).lock(name).acquire({ waitMs: 20_000 }));
    await untilQueued(leader.address, name, 2);
    const lost = lossOf(a);
    const frozenAt = performance.now();
    await follower.pause();
    try {
      const b = await next;
      const { reason, at } = await Promise.race([lost, sleep(0, { reason: 'not reported', at: Infinity })]);
      expect(reason).toBe('session-lost');
      expect(at).toBeLessThan(b.at);
      expect(() => a.assertValid()).toThrow();
      expect(b.lease.fencingToken).toBeGreaterThan(a.fencingToken);
      figure(`frozen follower, ${client}: loss reported after`, at - frozenAt);
      figure(`frozen follower, ${client}: the next one holds after`, b.at - frozenAt);
      await b.lease.release();
    } finally {
      follower.resume();
    }
  },
);

test('with all servers to choose from, the holder leaves the frozen follower and keeps its lease', async () => {
  await using lab = new Lab();
  const leader = await ensemble.leader();
  const { locks, server } = await atAFollower(lab, leader);
  const lease = await locks.lock('moved').acquire();
  const waiting = watched(lab.locks(leader).lock('moved').acquire({ waitMs: 20_000 }));
  await untilQueued(leader.address, 'moved', 2);
  await server.pause();
  try {
    await sleep(1.5 * SESSION_MS);
    lease.assertValid();
    expect(lease.signal.aborted).toBe(false);
    expect(waiting.settled).toBe(false);
    await lease.release();
    await (await waiting.work).release();
  } finally {
    server.resume();
  }
});

test('a follower that is cut from its leader answers reads, and keeps no lease alive', async () => {
  await using lab = new Lab();
  const [follower, leader] = [await ensemble.follower(), await ensemble.leader()];
  const cutOff = lab.locks(follower);
  const a = await cutOff.lock('cut').acquire();
  const next = grantOf(lab.locks(leader).lock('cut').acquire({ waitMs: 20_000 }));
  await untilQueued(leader.address, 'cut', 2);
  const lost = lossOf(a);
  const heal = await ensemble.cutFromLeader(follower);
  try {
    const b = await next;
    // It still serves, and it still shows A's node.
    expect(await follower.mode()).toBe('follower');
    const { reason, at } = await Promise.race([lost, sleep(0, { reason: 'not reported', at: Infinity })]);
    expect(reason).toBe('session-lost');
    expect(at).toBeLessThan(b.at);
    await b.lease.release();
  } finally {
    await heal();
  }
  // The cut off client comes back with a new session.
  const again = await cutOff.lock('cut').acquire({ waitMs: 20_000 });
  await again.release();
});

test('a killed leader costs neither a hold nor a waiter', async () => {
  await using lab = new Lab();
  // One without proxies: through them an election takes ten seconds.
  const fresh = lab.use(await startZookeeperEnsemble());
  const leader = await fresh.leader();
  const second = await fresh.follower();
  const options = { sessionTimeoutMs: 8_000 };
  const all = { address: fresh.servers };
  const holders = lab.locks(all, options);
  const lease = await holders.lock('leader').acquire();
  const waiting = watched(lab.locks(all, options).lock('leader').acquire({ waitMs: 20_000 }));
  await untilQueued(second.address, 'leader', 2);
  const killedAt = performance.now();
  await leader.kill();
  const other = await lab
    .locks({ address: ensemble.servers }, options)
    .lock('other')
    .acquire({ waitMs: 20_000 });
  figure('killed leader: a lock can be had after', performance.now() - killedAt);
  lease.assertValid();
  expect(waiting.settled).toBe(false);
  // A release is not waited for longer than a second: this waits until the holder is connected again.
  expect((await holders.inspect('leader')).holders).toHaveLength(1);
  await lease.release();
  const next = await waiting.work;
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  await Promise.all([next.release(), other.release()]);
});

/** Locks whose client has all servers to choose from, and chose a follower. */
async function atAFollower(lab: Lab, leader: ZooKeeperServer) {
  for (;;) {
    let client: AdminClient | undefined;
    const locks = lab.locks(
      { address: ensemble.servers },
      { setUpClient: (opened) => void (client = opened as AdminClient) },
    );
    await locks.inspect('nothing');
    const port = (client as unknown as { connectionManager: { socket: { remotePort: number } } })
      .connectionManager.socket.remotePort;
    const server = ensemble.members.find((member) => member.port === port);
    if (server !== undefined && server !== leader) return { locks, server };
    await locks.close();
  }
}
