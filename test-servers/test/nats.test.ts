import { describe, expect, it } from 'vitest';
import { startNatsCluster } from '../src/index.ts';

describe('a private cluster of NATS', { timeout: 60_000 }, () => {
  it('has one leader, whom all members know, and no leader of a stream that is not there', async () => {
    await using cluster = await startNatsCluster();
    const names = cluster.members.map(({ name }) => name);
    const leaders = await Promise.all(cluster.members.map((member) => member.metaLeader()));
    expect(new Set(leaders).size).toBe(1);
    expect(names).toContain(leaders[0]);
    expect(await cluster.members[0]?.streamLeader('none')).toBeUndefined();
    for (const member of cluster.members) await member.stop();
    expect(cluster.members.map(({ running }) => running)).toEqual([false, false, false]);
  });
});
