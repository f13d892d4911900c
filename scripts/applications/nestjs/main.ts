// A NestJS application: `@Locked` of core with what it needs injected through the constructor, and `@locks/nestjs`. CommonJS.
import 'reflect-metadata';
import { createLocks, Locked, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { Locked as LockedByModule, LocksModule, Once } from '@locks/nestjs';
import { memorySlots } from '@locks/nestjs/testing';
import { every } from '@locks/once';
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

@Injectable()
class Ledger {
  entries = 0;
  reports = 0;

  constructor(private readonly prices: Prices) {}

  @LockedByModule('ledger')
  async enter(sku: string): Promise<void> {
    const { entries } = this;
    await sleep(2);
    this.entries = entries + this.prices.of(sku);
  }

  @Once('report', { slot: every(1_000), atMostMs: 1_000, retry: 'next-slot', clock: () => 0 })
  async report(): Promise<void> {
    this.reports += 1;
  }
}

@Module({
  imports: [LocksModule.forRoot({ backend: () => memoryBackend(), slots: memorySlots() })],
  providers: [Ledger, Prices, Stock, { provide: LOCKS, useFactory: () => createLocks(memoryBackend()) }],
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
  const ledger = application.get(Ledger);
  await Promise.all(['a', 'bc', 'def'].map((sku) => ledger.enter(sku)));
  await ledger.report();
  await ledger.report();
  await application.close();
  const { entries, reports } = ledger;
  console.log(JSON.stringify({ one, mostOfOne, mostOfTwo: stock.most, audit, entries, reports }));
}

void main();
