import { createLocks } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, deploy } from '../src/redis/deployment.ts';
import { libraries, openClient } from '../src/redis/open-client.ts';

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

function sockets(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length;
}

/** Finer than a timer. */
async function spin(ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) await new Promise((resolve) => setImmediate(resolve));
}
