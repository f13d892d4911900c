/** One machine with the real node-cron: its task tells its begin and its end in a list of Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { redisBackend, redisSlots } from '@locks/redis-ioredis';
import { Redis } from 'ioredis';
import cron from 'node-cron';
import { scheduleInvoices } from '../src/schedulers/node-cron-coordinator.ts';

const [url = '', label = ''] = process.argv.slice(2);
const redis = new Redis(url);
cron.setLogger({ info() {}, warn() {}, error() {}, debug() {} });

const task = scheduleInvoices(
  createLocks(redisBackend(redis)),
  { slots: redisSlots(redis), label },
  async () => {
    await redis.rpush('runs', `begin ${label}`);
    await sleep(100);
    // The first run of all fails.
    if ((await redis.set('failed', label, 'NX')) === 'OK') {
      await redis.rpush('runs', `fail ${label}`);
      throw new Error('the mail server is away');
    }
    await redis.rpush('runs', `end ${label}`);
  },
  '* * * * * *',
);
task.on('execution:skipped', ({ reason }) => void redis.rpush('skipped', String(reason)));
