import { startCluster } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { locks } from './program.ts';
import { startStore, STORE_NAMES } from './started-stores.ts';

/** Each store in turn: they would disturb each other's times. */
describe('every store keeps its promises while workers are hurt', () => {
  it.each(STORE_NAMES)('%s', { timeout: 180_000 }, async (store) => {
    await using started = await startStore(store);
    await locks(started.url, 'prepare');
    const outcome = await locks(started.url, 'prove', '--minutes', '0.2', '--seed', '11');
    expect(outcome.stdout).not.toMatch(/^broken/m);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect(/, ([\d ]+) grants\b/.exec(outcome.stdout)?.[1]).toMatch(/^[1-9]/);
  });

  it('a cluster, whose other nodes are behind proxies too', { timeout: 180_000 }, async () => {
    const cluster = await startCluster({ replicasPerMaster: 0 });
    try {
      const url = cluster.nodes[0]?.url as string;
      const outcome = await locks(url, 'prove', '--minutes', '0.25', '--seed', '11', '--faults', 'cut,late');
      expect(outcome).toMatchObject({ code: 0, stderr: '' });
      const [, servers = ''] = /^behind proxies: (.*)$/m.exec(outcome.stdout) ?? [];
      for (const { port } of cluster.nodes) expect(servers).toContain(`:${port}`);
    } finally {
      await cluster.stop();
    }
  });
});
