import { setTimeout as delay } from 'node:timers/promises';
import { startNats } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { reportByNats } from '../src/drivers/nats.ts';

it('reports by NATS one after the other', async () => {
  await using server = await startNats();
  let inside = 0;
  const report = async (): Promise<number> => {
    inside += 1;
    await delay(5);
    const seen = inside;
    inside -= 1;
    return seen;
  };
  const all = Array.from({ length: 4 }, () => reportByNats(server.url, report));
  expect(await Promise.all(all)).toEqual([1, 1, 1, 1]);
});
