import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { failure, figure, grantOf, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import AdvisoryLab, {
  freshName,
  sharedServer,
  SLACK_MS,
  stopSharedServer,
  untilFree,
  untilQueued,
} from './advisory-lab.ts';

afterAll(stopSharedServer);

describe.concurrent('what happens to the server and its sessions', { timeout: 60_000 }, () => {
  it("an administrator ends the holder's session: the loss of all its leases is reported at once, and the waiter is in", async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const [holder, other] = [
      lab.locks(server, { name: `holder ${name}` }),
      lab.locks(server, { name: `other ${name}` }),
    ];
    const [lease, beside] = [await holder.lock(name).acquire(), await holder.lock(`${name} b`).acquire()];
    const losses = Promise.all([lossOf(lease), lossOf(beside)]);
    const entered = grantOf(other.lock(name).acquire());
    await untilWaiting(other, name);
    const startedAt = performance.now();
    await server.terminate(`application_name = 'holder ${name}'`);
    for (const { reason, at } of await losses) {
      expect(reason).toBe('session-lost');
      figure('session of the holder ended by an administrator: reported after', at - startedAt);
      expect(at - startedAt).toBeLessThan(SLACK_MS);
    }
    const next = await entered;
    figure('session of the holder ended by an administrator: next one in after', next.at - startedAt);
    expect(next.at - startedAt).toBeLessThan(SLACK_MS);
    // The client goes on with a new session.
    const again = await holder.lock(`${name} b`).acquire({ waitMs: 5_000 });
    await again.release();
    await next.lease.release();
    await untilFree(server, name);
  });

  it("an administrator ends the waiter's session: it waits again, and gets in", async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const [holder, waiter] = [
      lab.locks(server, { name: `holder ${name}` }),
      lab.locks(server, { name: `waiter ${name}` }),
    ];
    const lease = await holder.lock(name).acquire();
    const kept = await waiter.lock(`${name} kept`).acquire();
    const entered = waiter.lock(name).acquire({ waitMs: 20_000 });
    await untilWaiting(holder, name);
    // Only the session that stands in the queue.
    await server.terminate(`application_name = 'waiter ${name}' AND wait_event_type = 'Lock'`);
    await untilQueued(server, name, 1);
    kept.assertValid();
    // All of them.
    await server.terminate(`application_name = 'waiter ${name}'`);
    await untilQueued(server, name, 1);
    await lease.release();
    const next = await entered;
    next.assertValid();
    await next.release();
    await untilFree(server, name);
  });

  it('an administrator cancels a wait: it waits again, and gets in', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const [holder, waiter] = [lab.locks(server), lab.locks(server, { name: `waiter ${name}` })];
    const lease = await holder.lock(name).acquire();
    const entered = waiter.lock(name).acquire({ waitMs: 20_000 });
    await untilWaiting(holder, name);
    const blocked = `application_name = 'waiter ${name}' AND wait_event_type = 'Lock'`;
    await server.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${blocked}`);
    await untilWaiting(holder, name);
    await lease.release();
    await (await entered).release();
    await untilFree(server, name);
  });

  it('idle_session_timeout and statement_timeout of the server end neither a lease nor a wait', async () => {
    await using lab = new AdvisoryLab();
    const name = freshName();
    const server = await lab.server({ idle_session_timeout: '500ms', statement_timeout: '500ms' });
    const [holder, waiter] = [lab.locks(server), lab.locks(server)];
    const lease = await holder.lock(name).acquire();
    const entered = waiter.lock(name).acquire({ waitMs: 20_000 });
    await untilWaiting(holder, name);
    const position = `SELECT pid, waitstart FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
    const before = await server.query(position);
    expect(before).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    lease.assertValid();
    expect(await server.query(position)).toEqual(before);
    await lease.release();
    await (await entered).release();
  });

  it('a statement that fails does not poison the session: other leases live on', async () => {
    await using lab = new AdvisoryLab();
    // Room for about a hundred locks in all.
    const name = freshName();
    const server = await lab.server({ max_locks_per_transaction: 10, max_connections: 10 });
    const locks = lab.locks(server, { sessionTimeoutMs: 15_000, answerMs: 30_000 });
    const lease = await locks.lock(name).acquire();
    const many = Array.from({ length: 1_500 }, (_, index) => locks.lock(`many ${index}`).tryAcquire());
    const settled = await Promise.allSettled(many);
    const refused = settled.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    for (const { reason } of refused as PromiseRejectedResult[]) {
      // Out of shared memory.
      expect(reason).toMatchObject({ code: 'LOCK_BACKEND', cause: { code: '53200' } });
    }
    lease.assertValid();
    await Promise.all(settled.map(async (one) => one.status === 'fulfilled' && (await one.value?.release())));
    const rows = await server.query(
      `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1`,
    );
    expect(rows[0]?.['count']).toBe('1');
    await lease.release();
    await untilFree(server, name);
  });

  it('a standby is refused: its locks would exclude nobody elsewhere', async () => {
    await using lab = new AdvisoryLab();
    const server = await lab.server();
    await server.kill();
    await writeFile(join(server.dir, 'data', 'standby.signal'), '');
    await server.restart();
    const refused = await failure(lab.locks(server).lock(freshName()).acquire({ waitMs: 500 }));
    expect(refused).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(String(refused.cause)).toContain('standby');
  });
});
