import { createLocks, type LockManager } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { startProcess } from '@locks/core/conformance/process';
import { canFindServer, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import { CandidateProcesses, type ElectionStore } from '../src/leader/candidate-processes.ts';
import type { MachineCall, MachineCommands, MachineSetup, RecordKind } from '../src/once/commands.ts';

const MINUTE = 60_000;
/** The true time of all machines, a full minute of the past, where no store refuses a slot. */
const NOON = Math.floor(Date.now() / MINUTE) * MINUTE - 60 * MINUTE;
const MAIN = new URL('../src/once/main.ts', import.meta.url);
/** Longer than a process of these tests lives, also on a busy machine. */
const TTL_MS = 8_000;
/** The longest margin of a store, and what is slow on a busy machine. */
const LATE_MS = 25_000;

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** The stores whose servers tell the time by which a hold ends, with the options that are the default. */
const STORES = (['dynamodb', 's3', 'nats', 'mongodb', 'kubernetes'] as const satisfies RecordKind[]).filter(
  (store) => !missing.has(store) && (store !== 'kubernetes' || canFindServer('kubernetes')),
);

/** Repeats what one process of a short life does, until it gives something; fails where a process lived for a ttl. */
async function byShortLives<T>(live: () => Promise<T | undefined>): Promise<T> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < TTL_MS + LATE_MS) {
    const bornAt = performance.now();
    const result = await live();
    expect(performance.now() - bornAt).toBeLessThan(TTL_MS);
    if (result !== undefined) return result;
  }
  throw new Error('no process of a short life got the lock of the dead one');
}

describe.each(STORES)('processes that live for less than a ttl, on %s', { timeout: 90_000 }, (store) => {
  let env: Readonly<Record<string, string>>;
  let election: ElectionStore;
  let observer: LockManager;
  let teardown: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
    const started = await harness.setup?.();
    teardown = started?.teardown;
    env = started?.env ?? {};
    election = { harness: harness.module, env };
    observer = createLocks(await harness.createBackend());
  });
  afterAll(async () => {
    await observer?.close();
    await teardown?.();
  });

  async function runJob(label: string, work: MachineCall['work']): Promise<string> {
    const setup: MachineSetup = { store, env, label, aheadMs: 0 };
    const machine = await startProcess<MachineCommands>(MAIN, [JSON.stringify(setup)]);
    try {
      const job = {
        job: 'nightly',
        slotMs: MINUTE,
        atMostMs: TTL_MS,
        retry: 'next-machine',
        waitMs: 0,
      } as const;
      const { status } = await machine.call.once({ ...job, work }, NOON);
      return status;
    } finally {
      await machine.kill();
    }
  }

  it('a job whose machine died runs again by `once`', async () => {
    await expect(runJob('dies', 'die')).rejects.toThrow();
    let lives = 0;
    await byShortLives(async () => {
      lives += 1;
      return (await runJob(`life ${lives}`, 0)) === 'ran' ? true : undefined;
    });
    // The first of them came before the end of the dead one's lock.
    expect(lives).toBeGreaterThan(1);
  });

  it('a candidate leads by `lead` after the death of the leader', async () => {
    await using candidates = new CandidateProcesses('short-lived', election, TTL_MS);
    const first = await candidates.join('first');
    const { token } = await candidates.leads(first);
    await first.kill();
    const next = await byShortLives(async () => {
      const candidate = await candidates.join('next');
      const diesAt = performance.now() + TTL_MS / 8;
      try {
        for (;;) {
          const [term] = await candidate.call.terms();
          if (term !== undefined || performance.now() > diesAt) return term;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      } finally {
        // It leaves the queue first: a waiter that is killed there is in the way of others for some seconds.
        await candidate.call.stop();
        await waitUntil(async () => (await observer.inspect('short-lived')).waiters.length === 0, {
          what: 'the queue to be empty',
        });
        await candidate.kill();
      }
    });
    expect(next.token).toBeGreaterThan(token as bigint);
  });
});
