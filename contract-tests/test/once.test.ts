import type { Harness } from '@locks/core/conformance';
import { type CallableProcess, startProcess } from '@locks/core/conformance/process';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import type { MachineCall, MachineCommands, MachineSetup, RecordKind } from '../src/once/commands.ts';

type Machine = CallableProcess<MachineCommands>;

const MINUTE = 60_000;
const NOON = Date.parse('2026-11-22T12:00:00Z');
const MAIN = new URL('../src/once/main.ts', import.meta.url);

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** Harnesses of the conformance suite for whose stores there is a record, and the server that each needs. */
const STORES = (
  [
    ['sqlite', undefined],
    ['redis-ioredis', 'redis'],
    ['redis-node', 'redis'],
    ['postgres-lease', 'postgres'],
    ['mysql', 'mysql'],
  ] as const satisfies (readonly [RecordKind, string | undefined])[]
).filter(([, server]) => server === undefined || !missing.has(server));

const call = (job: string, options: Partial<MachineCall> = {}): MachineCall => ({
  ...{ job, slotMs: 10 * MINUTE, work: 0, atMostMs: 10 * MINUTE, retry: 'next-machine' },
  ...options,
});

async function begun(machines: readonly Machine[]): Promise<readonly string[]> {
  return (await Promise.all(machines.map((machine) => machine.call.begun()))).flat().toSorted();
}

describe.concurrent.each(STORES)('jobs of several machines on %s', { timeout: 60_000 }, (store) => {
  let env: Readonly<Record<string, string>>;
  let teardown: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
    const started = await harness.setup?.();
    teardown = started?.teardown;
    env = started?.env ?? {};
  });
  afterAll(() => teardown?.());

  /** Machines by the milliseconds that their clocks are ahead; they end with the use. */
  async function withMachines(
    aheadMs: readonly number[],
    use: (machines: readonly Machine[]) => Promise<void>,
  ): Promise<void> {
    const machines: Machine[] = [];
    try {
      for (const [index, ms] of aheadMs.entries()) {
        const setup: MachineSetup = { store, env, label: `m${index}`, aheadMs: ms };
        machines.push(await startProcess<MachineCommands>(MAIN, [JSON.stringify(setup)]));
      }
      await use(machines);
    } finally {
      await Promise.all(machines.map((machine) => machine.kill()));
    }
  }

  it.concurrent('whose clocks differ by minutes run every slot once', async () => {
    // Each machine has a cron that fires when its own clock shows a full ten minutes.
    const clocks = [0, -4 * MINUTE, 3 * MINUTE];
    await withMachines(clocks, async (machines) => {
      const fired: { machine: Machine; at: number }[] = [];
      for (let round = 0; round < 4; round += 1) {
        for (const [index, ms] of clocks.entries()) {
          fired.push({ machine: machines[index] as Machine, at: NOON + round * 10 * MINUTE - ms });
        }
      }
      const statuses: string[] = [];
      for (const { machine, at } of fired.toSorted((one, other) => one.at - other.at)) {
        statuses.push((await machine.call.once(call('clocks'), at)).status);
      }
      const perSlot = ['ran', 'done-before', 'done-before'];
      expect(statuses).toEqual([...perSlot, ...perSlot, ...perSlot, ...perSlot]);
      expect(await begun(machines)).toEqual(
        [0, 1, 2, 3].map((round) => new Date(NOON + round * 10 * MINUTE).toISOString()),
      );
      // A clock that is late by more than a slot.
      const late = (machines[1] as Machine).call.once(call('clocks'), NOON + 20 * MINUTE);
      expect((await late).status).toBe('slot-over');
    });
  });

  it.concurrent('that fire at the same moment run the slot once', async () => {
    await withMachines([0, -MINUTE, MINUTE], async (machines) => {
      for (let round = 0; round < 3; round += 1) {
        // In the middle of the slot, so that all clocks show the same one.
        const at = NOON + (round * 10 + 5) * MINUTE;
        const results = await Promise.all(
          machines.map((machine) => machine.call.once(call('at once', { work: 50, waitMs: 30_000 }), at)),
        );
        expect(results.map(({ status }) => status).toSorted()).toEqual(['done-before', 'done-before', 'ran']);
      }
      expect(await begun(machines)).toHaveLength(3);
    });
  });

  it.concurrent('restart, and do not run the slot again', async () => {
    await withMachines([0], async ([machine]) => {
      expect(await machine?.call.once(call('restart'), NOON)).toMatchObject({ status: 'ran', value: 'm0' });
    });
    await withMachines([0], async ([machine]) => {
      expect(await machine?.call.once(call('restart'), NOON + MINUTE)).toMatchObject({
        status: 'done-before',
        recorded: { slot: '2026-11-22T12:00:00.000Z', label: 'm0' },
      });
    });
  });

  it.concurrent('one that dies in the middle of its job is replaced by one that waits', async () => {
    await withMachines([0, 0], async (machines) => {
      const [victim, heir] = machines as [Machine, Machine];
      const options = { atMostMs: 2_000, waitMs: 40_000 };
      const died = victim.call.once(call('death', { ...options, work: 3_600_000 }), NOON).catch(() => {});
      await waitUntil(async () => (await victim.call.begun()).length > 0, { what: 'the job to begin' });
      await victim.kill();
      await died;
      expect(await heir.call.once(call('death', options), NOON)).toMatchObject({
        status: 'ran',
        value: 'm1',
      });
    });
  });

  it.concurrent('one that dies between its work and the record: the slot runs again if retry lets it', async () => {
    for (const [retry, status] of [
      ['next-machine', 'ran'],
      ['next-slot', 'failed-before'],
    ] as const) {
      await withMachines([0, 0], async (machines) => {
        const [victim, heir] = machines as [Machine, Machine];
        const job = { atMostMs: 1_000, waitMs: 40_000, retry };
        await victim.call.once(call(`crash ${retry}`, { ...job, work: 'die' }), NOON).catch(() => {});
        expect((await heir.call.once(call(`crash ${retry}`, job), NOON)).status).toBe(status);
      });
    }
  });

  it.concurrent('with keepAlive a job may take longer than atMostMs, which bounds the silence of a machine that died', async () => {
    await withMachines([0, 0], async (machines) => {
      const [first, heir] = machines as [Machine, Machine];
      const options = { atMostMs: 1_000, keepAlive: true, waitMs: 40_000 };
      const long = first.call.once(call('alive', { ...options, work: 3_000 }), NOON);
      await waitUntil(async () => (await first.call.begun()).length > 0, { what: 'the job to begin' });
      expect((await heir.call.once(call('alive', options), NOON)).status).toBe('done-before');
      expect(await long).toMatchObject({ status: 'ran', value: 'm0' });
      const next = NOON + 10 * MINUTE;
      const died = first.call.once(call('alive', { ...options, work: 3_600_000 }), next).catch(() => {});
      await waitUntil(async () => (await first.call.begun()).length > 1, { what: 'the job to begin' });
      await first.kill();
      await died;
      expect(await heir.call.once(call('alive', options), next)).toMatchObject({
        status: 'ran',
        value: 'm1',
      });
    });
  });

  it.concurrent("a run that failed or died is not repeated before the next slot with retry 'next-slot'", async () => {
    await withMachines([0, 0], async (machines) => {
      const [victim, other] = machines as [Machine, Machine];
      const options = { retry: 'next-slot', atMostMs: 2_000, waitMs: 40_000 } as const;
      const failed = victim.call.once(call('next slot', { ...options, work: 'fail' }), NOON);
      await expect(failed).rejects.toThrow('the job failed');
      const again = await other.call.once(call('next slot', options), NOON);
      expect(again).toMatchObject({ status: 'failed-before', recorded: { state: 'begun', label: 'm0' } });
      const next = NOON + 10 * MINUTE;
      const died = victim.call.once(call('next slot', { ...options, work: 3_600_000 }), next).catch(() => {});
      await waitUntil(async () => (await victim.call.begun()).length > 1, { what: 'the job to begin' });
      await victim.kill();
      await died;
      expect(await other.call.once(call('next slot', options), next)).toMatchObject({
        status: 'failed-before',
      });
      expect(await other.call.once(call('next slot', options), next + 10 * MINUTE)).toMatchObject({
        status: 'ran',
      });
    });
  });

  it.concurrent('one that was stopped (SIGSTOP) past its lease is overtaken, and writes over nothing', async () => {
    await withMachines([0, 0], async (machines) => {
      const [stopped, other] = machines as [Machine, Machine];
      const options = { atMostMs: 2_000, waitMs: 40_000 };
      const late = stopped.call.once(call('pause', { ...options, work: 1_000 }), NOON);
      await waitUntil(async () => (await stopped.call.begun()).length > 0, { what: 'the job to begin' });
      stopped.freeze();
      expect(await other.call.once(call('pause', options), NOON)).toMatchObject({ status: 'ran' });
      stopped.thaw();
      expect(await late).toMatchObject({ status: 'overtaken', value: 'm0' });
      expect(await other.call.once(call('pause', options), NOON)).toMatchObject({
        status: 'done-before',
        recorded: { label: 'm1' },
      });
      // The machine that was stopped does not run the slot again.
      expect(await stopped.call.once(call('pause', options), NOON)).toMatchObject({ status: 'done-before' });
    });
  });

  it.concurrent('a function that is frozen past its ttl: another one enters, and it knows that it holds nothing', async () => {
    await withMachines([0, 0], async (machines) => {
      const [frozen, other] = machines as [Machine, Machine];
      await frozen.call.hold('frozen', { ttlMs: 2_000, waitMs: 20_000 });
      frozen.freeze();
      // Longer than the ttl, of which nobody renews anything.
      await other.call.hold('frozen', { ttlMs: 30_000, waitMs: 20_000 });
      frozen.thaw();
      expect(await frozen.call.held()).toEqual({ validForMs: 0, isAborted: true, released: 'LOCK_LOST' });
      expect(await other.call.held()).toMatchObject({ isAborted: false, released: 'released' });
      // Its connections still serve.
      await frozen.call.hold('frozen', { ttlMs: 30_000, waitMs: 20_000 });
      expect(await frozen.call.held()).toMatchObject({ isAborted: false, released: 'released' });
    });
  });

  it.concurrent('a record refuses a token below the one that wrote last, and takes the same one again', async () => {
    await withMachines([0], async ([machine]) => {
      const record = (machine as Machine).call;
      const entry = (token: bigint) =>
        ({ slot: `of ${token}`, state: 'done', token, label: 'é', at: NOON }) as const;
      const high = 2n ** 62n + 1n;
      expect(await record.read('tokens')).toBeUndefined();
      expect(await record.write('tokens', entry(high))).toBe(true);
      expect(await record.write('tokens', entry(high))).toBe(true);
      // As numbers these two would be equal.
      const refused = await record
        .write('tokens', entry(high - 1n))
        .catch(({ code }: { code: unknown }) => code);
      expect(['LOCK_LOST', false]).toContain(refused);
      expect(await record.read('tokens')).toMatchObject(entry(high));
      expect(await record.write('tokens', entry(high + 1n))).toBe(true);
      expect(await record.read('tokens')).toMatchObject(entry(high + 1n));
    });
  });
});
