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

/** Machines by the milliseconds that their clocks are ahead; they end with the use. */
type WithMachines = (
  aheadMs: readonly number[],
  use: (machines: readonly Machine[]) => Promise<void>,
) => Promise<void>;

/** Starts the server of a harness for the tests of this `describe`. */
function onStore(store: RecordKind): WithMachines {
  let env: Readonly<Record<string, string>>;
  let teardown: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
    const started = await harness.setup?.();
    teardown = started?.teardown;
    env = started?.env ?? {};
  });
  afterAll(() => teardown?.());
  return async (aheadMs, use) => {
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
  };
}

describe.concurrent.each(STORES)('jobs of several machines on %s', { timeout: 60_000 }, (store) => {
  const withMachines = onStore(store);

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

describe.concurrent.each(STORES)('the newest of several machines on %s', { timeout: 60_000 }, (store) => {
  const withMachines = onStore(store);
  const waits = (machine: Machine, name: string, count: number) =>
    waitUntil(async () => (await machine.call.waiting(name)) >= count, { what: `${count} that wait` });

  it.concurrent('runs; an older one that waits does not, and who works works on', async () => {
    await withMachines([0, 0, 0], async (machines) => {
      const [worker, older, newest] = machines as [Machine, Machine, Machine];
      const works = worker.call.newest('save', 1_500);
      await waitUntil(async () => (await worker.call.newestBegun()) > 0, { what: 'the work to begin' });
      const superseded = older.call.newest('save', 0);
      await waits(worker, 'save', 1);
      const runs = newest.call.newest('save', 0);
      expect(await Promise.all([works, superseded, runs])).toEqual(['ran', 'LOCK_SUPERSEDED', 'ran']);
      expect(await older.call.newestBegun()).toBe(0);
    });
  });

  it.concurrent('that dies while it waits hinders no later one', async () => {
    await withMachines([0, 0, 0], async (machines) => {
      const [worker, victim, heir] = machines as [Machine, Machine, Machine];
      const works = worker.call.newest('death', 2_000);
      await waitUntil(async () => (await worker.call.newestBegun()) > 0, { what: 'the work to begin' });
      const died = victim.call.newest('death', 0).catch(() => {});
      await waits(worker, 'death', 1);
      await victim.kill();
      await died;
      expect(await heir.call.newest('death', 0)).toBe('ran');
      expect(await works).toBe('ran');
    });
  });
});

const WITH_RESULTS = STORES.filter(([store]) => store !== 'sqlite' && store !== 'mysql');

describe.concurrent.each(WITH_RESULTS)('results that machines share on %s', { timeout: 60_000 }, (store) => {
  const withMachines = onStore(store);
  const built = async (machines: readonly Machine[]) =>
    (await Promise.all(machines.map((machine) => machine.call.built()))).flat();

  it.concurrent('callers of three machines that come together get one result, until its time is over', async () => {
    await withMachines([0, -MINUTE, MINUTE], async (machines) => {
      const build = { key: 'prices', callers: 8, work: 100, shareForMs: 60_000 };
      const callAll = async () =>
        (await Promise.all(machines.map((machine) => machine.call.coalesce(build)))).flat();
      const first = await callAll();
      expect(await built(machines)).toEqual([first[0]]);
      expect(first).toEqual(Array(24).fill(first[0]));
      expect(await callAll()).toEqual(first);
      const [one] = machines as [Machine];
      const brief = { key: 'brief', callers: 1, work: 0, shareForMs: 200 };
      const [before] = await one.call.coalesce(brief);
      await waitUntil(async () => !(await one.call.getResult('brief')), { what: 'the end of the result' });
      expect(await one.call.coalesce(brief)).not.toEqual([before]);
    });
  });

  it.concurrent('a machine that dies in its work is replaced by one that waits', async () => {
    await withMachines([0, 0], async (machines) => {
      const [victim, heir] = machines as [Machine, Machine];
      const build = { key: 'death', callers: 2, ttlMs: 1_000, work: 0 };
      const died = victim.call.coalesce({ ...build, work: 3_600_000 }).catch(() => {});
      await waitUntil(async () => (await victim.call.built()).length > 0, { what: 'the work to begin' });
      const inherited = heir.call.coalesce(build);
      await victim.kill();
      await died;
      expect(await inherited).toEqual(['m1:0', 'm1:0']);
    });
  });

  it.concurrent('a machine that was stopped (SIGSTOP) past its lease replaces no newer result', async () => {
    await withMachines([0, 0], async (machines) => {
      const [stopped, other] = machines as [Machine, Machine];
      const build = { key: 'pause', callers: 1, ttlMs: 1_000, work: 0, shareForMs: 60_000 };
      const late = stopped.call.coalesce({ ...build, work: 1_000 });
      await waitUntil(async () => (await stopped.call.built()).length > 0, { what: 'the work to begin' });
      stopped.freeze();
      expect(await other.call.coalesce(build)).toEqual(['m1:0']);
      stopped.thaw();
      expect(await late).toEqual(['m0:0']);
      expect(await stopped.call.coalesce(build)).toEqual(['m1:0']);
    });
  });

  it.concurrent('a text ends by itself; its token refuses a lower one also after that', async () => {
    await withMachines([0], async ([machine]) => {
      const { getResult, setResult } = (machine as Machine).call;
      const high = 2n ** 62n + 1n;
      const set = (value: string, token: bigint, ttlMs = 60_000) => setResult('tokens', value, token, ttlMs);
      expect((await getResult('tokens')) ?? undefined).toBeUndefined();
      await set('é', high);
      expect(await getResult('tokens')).toBe('é');
      // As numbers these two would be equal.
      await expect(set('late', high - 1n)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
      await set('again', high, 100);
      await waitUntil(async () => !(await getResult('tokens')), { what: 'the end of the text' });
      await expect(set('late', high - 1n)).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await set('newer', high + 1n);
      expect(await getResult('tokens')).toBe('newer');
    });
  });
});
