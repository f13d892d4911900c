import { startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { CompiledApplication } from './running-application.ts';

it('@Cron() of @nestjs/schedule in two processes: @Once() sends each slot once, and one that failed again', async () => {
  await using server = await startRedis();
  await using compiled = await CompiledApplication.compile();
  const start = () => compiled.start({ REDIS_URL: server.url }, 'scheduled.js');
  const processes = await Promise.all([start(), start()]);
  const redis = new Redis(server.url);
  const sent = () => redis.lrange('sent', 0, -1);
  const repeated = async () => {
    const failed = await redis.smembers('failed');
    return (await sent()).some((slot) => failed.includes(slot));
  };
  const skipped = async () => Number(await redis.get('status:done-before'));
  await waitUntil(async () => (await repeated()) && (await skipped()) > 0, {
    what: 'a slot that was sent after it failed, and one of which the other process was told that it is done',
  });
  for (const one of processes) one.terminate();
  const ends = await Promise.all(processes.map((one) => one.ended()));
  expect(ends.map(({ code, signal }) => signal ?? code)).toEqual(['SIGTERM', 'SIGTERM']);
  const slots = await sent();
  expect(slots).toEqual([...new Set(slots)]);
  redis.disconnect();
});
