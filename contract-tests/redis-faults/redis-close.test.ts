import { createLocks } from '@locks/core';
import { startReplicated, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, deploy } from '../src/harnesses/redis/deployment.ts';
import { libraries, openClient } from '../src/harnesses/redis/open-client.ts';

const topologies = ['standalone', 'sentinel', 'cluster'] as const;
/** A first waiter's own connection is up by then, on every topology. */
const LONGEST_MS = 40;
const STEPS = 40;

describe.each(topologies)('on a %s', (topology) => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await deploy(topology);
  }, 60_000);
  afterAll(() => deployment?.stop());

  it.each(libraries)(
    '%s: a close at any moment of connecting leaves no connection',
    async (library) => {
      for (let step = 0; step < STEPS; step++) {
        const before = sockets();
        const client = await openClient(library, deployment.direct);
        const locks = createLocks(client.backend());
        await locks.lock('stock').acquire();
        const waiting = locks.lock('stock').acquire({ waitMs: 60_000 });
        const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
        await spin(LONGEST_MS * (step / STEPS) ** 2);
        await locks.close();
        await client.end();
        await refused;
        await waitUntil(() => sockets() <= before, {
          what: `the end of the connections of step ${step}`,
          timeoutMs: 3_000,
        });
      }
    },
    60_000,
  );
});

describe('with a replica that does not answer', () => {
  it.each(libraries)(
    '%s: a close while grants wait for it leaves no connection',
    async (library) => {
      await using replicated = await startReplicated({ replicas: 1 });
      const { master, replicas } = replicated;
      await replicas[0]?.pause();
      const before = sockets();
      const client = await openClient(library, { kind: 'standalone', url: master.url });
      const locks = createLocks(client.backend({ minReplicas: 1, replicaTimeoutMs: 30_000 }));
      const refusals: Promise<void>[] = [];
      const acquire = async (name: string): Promise<void> => {
        const refused = expect(locks.lock(name).acquire()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
        refusals.push(refused);
        await waitUntil(async () => (await master.command('EXISTS', `lock::${name}`)) === 1, { what: name });
        // Behind the answer.
        await client.set('read', 'on');
      };
      await acquire('asked for');
      await waitUntil(async () => /cmd=wait/.test(String(await master.command('CLIENT', 'LIST'))), {
        what: 'the question',
      });
      await acquire('next');
      await locks.close();
      await client.end();
      await Promise.all(refusals);
      await waitUntil(() => sockets() <= before, { what: 'the end of the connections', timeoutMs: 3_000 });
      expect(await master.command('EXISTS', 'lock::asked for', 'lock::next')).toBe(0);
    },
    60_000,
  );
});

function sockets(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length;
}

/** Finer than a timer. */
async function spin(ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) await new Promise((resolve) => setImmediate(resolve));
}
