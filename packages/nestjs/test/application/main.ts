/** A shop with its stock in Redis: a NestJS application as users write it, for locks-at-work.test.ts. */
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LockManager } from '@locks/core';
import { InjectLocks, Locked, LocksModule, Once } from '@locks/nestjs';
import { every, type OnceRun, textSlots } from '@locks/once';
import { fencedSet, redisBackend } from '@locks/redis-ioredis';
import { Controller, Get, HttpCode, Inject, Injectable, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';

const REDIS = Symbol('redis');
const drainMs = Number(process.env['DRAIN_MS']);
const hourly = { slot: every(3_600_000), atMostMs: 60_000, retry: 'next-machine', waitMs: 30_000 } as const;

@Injectable()
class Stock {
  readonly redis: Redis;

  constructor(@Inject(REDIS) redis: Redis) {
    this.redis = redis;
  }

  /** Reads, thinks and writes: without the lock two calls would sell the same unit. */
  @Locked((sku: string) => `stock:${sku}`, { waitMs: 30_000 })
  async sell(sku: string): Promise<string> {
    const units = Number(await this.redis.get(`units:${sku}`));
    await sleep(1);
    if (units < 1) return 'sold out';
    await this.redis.set(`units:${sku}`, units - 1);
    return 'sold';
  }

  @Locked('count')
  async count(ms: number): Promise<string> {
    await this.redis.incr('counts:begun');
    await sleep(ms);
    await this.redis.incr('counts:ended');
    return 'counted';
  }
}

@Injectable()
class Reports {
  readonly redis: Redis;

  constructor(@Inject(REDIS) redis: Redis) {
    this.redis = redis;
  }

  @Once('report', hourly)
  async write(run?: OnceRun): Promise<void> {
    await this.redis.rpush('reports', String(run?.fencingToken));
    await sleep(50);
  }
}

@Controller()
class Shop {
  readonly stock: Stock;
  readonly reports: Reports;
  readonly locks: LockManager;

  constructor(
    @Inject(Stock) stock: Stock,
    @Inject(Reports) reports: Reports,
    @InjectLocks() locks: LockManager,
  ) {
    this.stock = stock;
    this.reports = reports;
    this.locks = locks;
  }

  @Post('sell/:sku')
  sell(@Param('sku') sku: string): Promise<string> {
    return this.stock.sell(sku);
  }

  /** Answers when the count has ended. */
  @Post('count/:ms')
  count(@Param('ms') ms: string): Promise<string> {
    return this.stock.count(Number(ms));
  }

  /** Answers at once: the count goes on in the background. */
  @Post('count-later/:ms')
  @HttpCode(202)
  countLater(@Param('ms') ms: string): void {
    this.stock.count(Number(ms)).catch((error: unknown) => console.error(error));
  }

  @Post('report')
  report(): Promise<void> {
    return this.reports.write();
  }

  @Get('health')
  async health(): Promise<object> {
    return await this.locks.ping();
  }
}

@Module({
  providers: [{ provide: REDIS, useFactory: () => new Redis(process.env['REDIS_URL'] ?? '') }],
  exports: [REDIS],
})
class RedisModule {}

@Module({
  imports: [
    RedisModule,
    LocksModule.forRootAsync({
      isGlobal: true,
      imports: [RedisModule],
      inject: [REDIS],
      useFactory: (redis: Redis) => ({
        backend: redisBackend(redis),
        defaults: { ttlMs: 60_000 },
        slots: textSlots({
          get: (key) => redis.get(key),
          set: (key, value, token) => fencedSet(redis, key, value, token),
        }),
        drainMs,
        afterClose: () => redis.quit(),
      }),
    }),
  ],
  controllers: [Shop],
  providers: [Stock, Reports],
})
class AppModule {}

const application = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
application.enableShutdownHooks();
await application.listen(0, '127.0.0.1');
console.log(await application.getUrl());
