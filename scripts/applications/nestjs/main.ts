// A NestJS application: decorators of `experimentalDecorators`, and what they need injected through the constructor.
import 'reflect-metadata';
import { createLocks, Locked, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as sleep } from 'node:timers/promises';

const LOCKS = Symbol('locks');

@Injectable()
class Prices {
  of(sku: string): number {
    return sku.length;
  }
}

@Injectable()
class Stock implements OnModuleDestroy {
  readonly units = new Map([
    ['sku-1', 10],
    ['sku-2', 10],
  ]);
  inside = 0;
  most = 0;

  constructor(
    @Inject(LOCKS) readonly locks: LockManager,
    private readonly prices: Prices,
  ) {}

  @Locked(
    (self: Stock) => self.locks,
    (sku: string) => `stock:${sku}`,
  )
  async sell(sku: string, count: number): Promise<number> {
    const units = this.units.get(sku) ?? 0;
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    await sleep(5);
    this.inside -= 1;
    this.units.set(sku, units - count);
    return count * this.prices.of(sku);
  }

  @Locked((self: Stock) => self.locks)
  async audit(): Promise<number> {
    return [...this.units.values()].reduce((sum, units) => sum + units, 0);
  }

  onModuleDestroy(): Promise<void> {
    return this.locks.close();
  }
}

@Module({
  providers: [Prices, Stock, { provide: LOCKS, useFactory: () => createLocks(memoryBackend()) }],
})
class AppModule {}

async function main(): Promise<void> {
  const application = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
  const stock = application.get(Stock);
  const one = await Promise.all([1, 2, 3].map((count) => stock.sell('sku-1', count)));
  const mostOfOne = stock.most;
  stock.most = 0;
  await Promise.all([stock.sell('sku-1', 1), stock.sell('sku-2', 2)]);
  const audit = await stock.audit();
  await application.close();
  console.log(JSON.stringify({ one, mostOfOne, mostOfTwo: stock.most, audit }));
}

void main();
