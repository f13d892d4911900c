import { describe, expect, it } from 'vitest';
import { startSentinel, waitUntil } from '../src/index.ts';

describe('a Sentinel deployment', () => {
  it('fails over when the master is killed, and takes it back as a replica', async () => {
    await using deployment = await startSentinel();
    const old = await deployment.master();
    expect(old).toBe(deployment.nodes[0]);
    await old.command('SET', 'a', 1);
    for (const replica of deployment.nodes.slice(1)) {
      await waitUntil(async () => (await replica.command('GET', 'a')) === '1', { what: 'replication' });
    }
    await old.kill();
    const next = await deployment.waitForNewMaster(old.port);
    expect(next).not.toBe(old);
    expect(await next.command('GET', 'a')).toBe('1');
    expect(await deployment.master()).toBe(next);
    await old.restart();
    const demoted = async () => (await old.info('replication'))['role'] === 'slave';
    await waitUntil(demoted, { what: 'the old master to become a replica', timeoutMs: 40_000 });
  });

  it('fails over when the master is paused', async () => {
    await using deployment = await startSentinel({ replicas: 1, downAfterMs: 500 });
    const old = await deployment.master();
    await old.pause();
    const next = await deployment.waitForNewMaster(old.port);
    expect(next).toBe(deployment.nodes[1]);
    old.resume();
  });
});
