/** Invoices that the cron of each process starts, and one process sends: with @nestjs/schedule, for scheduled-jobs.test.ts. */
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocksModule, Once } from '@locks/nestjs';
import { every, type OnceRun, textSlots } from '@locks/once';
import { fencedSet, redisBackend } from '@locks/redis-ioredis';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';

const redis = new Redis(process.env['REDIS_URL'] ?? '');

@Injectable()
class Invoices {
  // Each second, in the middle of a slot.
  @Cron('* * * * * *')
  @Once('invoices', {
    slot: every(1_000, { offsetMs: 500 }),
    atMostMs: 60_000,
    waitMs: 30_000,
    retry: 'next-machine',
    onResult: ({ status }) => void redis.incr(`status:${status}`),
  })
  async send(run?: OnceRun): Promise<void> {
    if (run === undefined) return;
    await sleep(20);
    // The first attempt of every other slot fails.
    const isEven = Math.floor(Date.parse(run.slot) / 1_000) % 2 === 0;
    if (isEven && (await redis.sadd('failed', run.slot)) === 1) throw new Error('the mail server is away');
    await redis.rpush('sent', run.slot);
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    LocksModule.forRoot({
      backend: redisBackend(redis),
      slots: textSlots({
        get: (key) => redis.get(key),
        set: (key, value, token) => fencedSet(redis, key, value, token),
      }),
      afterClose: () => redis.quit(),
    }),
  ],
  providers: [Invoices],
})
class AppModule {}

const application = await NestFactory.createApplicationContext(AppModule, { logger: ['warn'] });
application.enableShutdownHooks();
console.log('scheduled');
