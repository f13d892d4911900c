import type { ManagerOptions } from '@locks/core';
import { renewalThread } from '@locks/core/renewal-thread';
import { Locked, LocksModule } from '@locks/nestjs';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { Injectable } from '@nestjs/common';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import makeBackend from './fixtures/thread-backend.ts';

const TTL_MS = 1_000;
const module = new URL('fixtures/thread-backend.ts', import.meta.url);

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
  process.env['LOCKS_TEST_REDIS'] = server.url;
});
afterAll(() => server.stop());

@Injectable()
class Reports {
  #ended = (_rendering: Promise<void>): void => {};
  readonly rendered = new Promise<void>((resolve) => (this.#ended = resolve));

  @Locked('report')
  async render(): Promise<void> {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * TTL_MS);
  }

  @Cron('* * * * * *', { waitForCompletion: true })
  async tick(): Promise<void> {
    const rendering = this.render();
    this.#ended(rendering);
    await rendering.catch(() => {});
  }
}

/** Starts an application, and gives what its first job of cron comes to: its lock is lost, or not. */
async function firstJob(defaults: () => ManagerOptions): Promise<void> {
  const locks = LocksModule.forRootAsync({
    // A thread belongs to one manager: it is made with the manager.
    useFactory: () => ({
      backend: makeBackend(),
      defaults: { ttlMs: TTL_MS, ...defaults() },
      drainMs: 60_000,
    }),
  });
  const imports = [locks, ScheduleModule.forRoot()];
  const application = await Test.createTestingModule({ imports, providers: [Reports] }).compile();
  onTestFinished(() => application.close());
  const reports = application.get(Reports);
  await application.init();
  return reports.rendered;
}

it('a job of @Cron() keeps its lock while it blocks the event loop, with a renewal thread among the defaults', async () => {
  await firstJob(() => ({ renewalThread: renewalThread(module, { maxBlockedMs: 60_000 }) }));
}, 30_000);

it('a job of @Cron() loses its lock while it blocks the event loop, without one', async () => {
  await expect(firstJob(() => ({}))).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
}, 30_000);
