import { setTimeout as delay } from 'node:timers/promises';
import { startRedis, startRestBridge } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { reportByGlide } from '../src/drivers/glide.ts';
import { reportByUpstash } from '../src/drivers/upstash.ts';

it('reports by GLIDE and by Upstash one after the other', async () => {
  await using server = await startRedis();
  await using bridge = await startRestBridge(server);
  let inside = 0;
  const report = async (): Promise<number> => {
    inside += 1;
    await delay(5);
    const seen = inside;
    inside -= 1;
    return seen;
  };
  const all = [1, 2].flatMap(() => [
    reportByGlide(server.host, server.port, report),
    reportByUpstash(bridge.url, bridge.token, report),
  ]);
  expect(await Promise.all(all)).toEqual([1, 1, 1, 1]);
});
