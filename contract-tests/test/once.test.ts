import type { Harness } from '@locks/core/conformance';
import { type CallableProcess, startProcess } from '@locks/core/conformance/process';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import type { MachineCall, MachineCommands, MachineSetup, RecordKind } from '../src/once/commands.ts';

type Machine = CallableProcess<MachineCommands>;

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** The true time of all machines, a full ten minutes. It lies in the past, where no store refuses a slot. */
const NOON = Math.floor(Date.now() / (10 * MINUTE)) * 10 * MINUTE - DAY;
const MAIN = new URL('../src/once/main.ts', import.meta.url);

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** Harnesses of the conformance suite for whose stores there is a slot store, and the server that each needs. */
const STORES = (
  [
    ['sqlite', undefined],
    ['file', undefined],
    ['redis-ioredis', 'redis'],
    ['redis-node', 'redis'],
    ['postgres-lease', 'postgres'],
    ['mysql', 'mysql'],
    ['etcd', 'etcd'],
    ['zookeeper', 'zookeeper'],
    ['zookeeper-native', 'zookeeper'],
    ['dynamodb', 'dynamodb'],
    ['s3', 's3'],
    ['nats', 'nats'],
    ['mongodb', 'mongodb'],
    ['kubernetes', 'kubernetes'],
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

/** The server of each harness, which the tests of this file share: a harness has one at a time. */
const servers = new Map<RecordKind, Promise<StartedServer>>();
afterAll(async () => {
  for (const server of servers.values()) await (await server)?.teardown();
});

type StartedServer = Awaited<ReturnType<NonNullable<Harness['setup']>>> | undefined;

async function startServer(store: RecordKind): Promise<StartedServer> {
  const { default: harness } = (await import(harnessUrl(store).href)) as { default: Harness };
  return await harness.setup?.();
}

/** Starts the server of a harness for the tests of this `describe`, unless it runs. */
function onStore(store: RecordKind): WithMachines {
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    const server = servers.get(store) ?? startServer(store);
    servers.set(store, server);
    env = (await server)?.env ?? {};
  });
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

  it.concurrent('one whose clock is a day ahead is refused, and does not keep the others from running', async () => {
    await withMachines([0, DAY], async (machines) => {
      const [right, ahead] = machines as [Machine, Machine];
      const now = Date.now();
      for (const retry of ['next-machine', 'next-slot'] as const) {
        const refused = ahead.call.once(call('ahead', { retry }), now);
        await expect(refused).rejects.toMatchObject({ code: 'LOCK_CLOCK_SKEW' });
      }
      expect((await right.call.once(call('ahead'), now)).status).toBe('ran');
      // A slot store that was written before such slots were refused.
      const { entry } = await right.call.read('ahead');
      if (entry === undefined) throw new Error('nothing is recorded');
      await ahead.call.write('ahead', { ...entry, slot: new Date(now + DAY).toISOString() });
      expect(await right.call.once(call('ahead'), now)).toMatchObject({
        status: 'slot-over',
        isSlotAhead: true,
      });
      expect(await right.call.reset('ahead')).toMatchObject({ label: 'm0' });
      expect((await right.call.once(call('ahead'), now)).status).toBe('ran');
      expect(await begun([ahead])).toEqual([]);
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
        recorded: { slot: new Date(NOON).toISOString(), label: 'm0' },
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

  it.concurrent('one that dies between its work and the slots: the slot runs again if retry lets it', async () => {
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

  it.concurrent('a slot store refuses a token below the one that wrote last, and takes the same one again', async () => {
    await withMachines([0], async ([machine]) => {
      const slots = (machine as Machine).call;
      const entry = (token: bigint) =>
        ({ slot: `of ${token}`, state: 'done', token, label: 'é', at: NOON }) as const;
      const high = 2n ** 62n + 1n;
      expect((await slots.read('tokens')).entry).toBeUndefined();
      expect(await slots.write('tokens', entry(high))).toBe(true);
      expect(await slots.write('tokens', entry(high))).toBe(true);
      // As numbers these two would be equal.
      const refused = await slots
        .write('tokens', entry(high - 1n))
        .catch(({ code }: { code: unknown }) => code);
      expect(['LOCK_LOST', false]).toContain(refused);
      expect(await slots.read('tokens')).toMatchObject({ entry: entry(high) });
      expect(await slots.write('tokens', entry(high + 1n))).toBe(true);
      expect(await slots.read('tokens')).toMatchObject({ entry: entry(high + 1n) });
    });
  });
});

/** ZooKeeper has no `steal`, by which the newest caller gets its seat. */
const STEAL = STORES.filter(([store]) => !store.startsWith('zookeeper'));

describe.concurrent.each(STEAL)('the newest of several machines on %s', { timeout: 60_000 }, (store) => {
  const withMachines = onStore(store);
  const waits = (machine: Machine, name: string, count: number) =>
    waitUntil(async () => (await machine.call.waiting(name)) >= count, { what: `${count} that wait` });

  it.concurrent('of many calls each runs or is superseded, and none is left without knowing', async () => {
    await withMachines([0, 0, 0], async (machines) => {
      const calls = Array.from({ length: 30 }, (_, n) =>
        (machines[n % 3] as Machine).call.newest('newest storm', 2),
      );
      const outcomes = await Promise.all(calls);
      expect(outcomes).toContain('ran');
      expect(outcomes.filter((outcome) => outcome !== 'ran' && outcome !== 'LOCK_SUPERSEDED')).toEqual([]);
    });
  });

  it.concurrent('runs; an older one that waits does not, and who works works on', async () => {
    await withMachines([0, 0, 0], async (machines) => {
      const [worker, older, newest] = machines as [Machine, Machine, Machine];
      const works = worker.call.newest('newest save', 'until told');
      await waitUntil(async () => (await worker.call.newestBegun()) > 0, { what: 'the work to begin' });
      const superseded = older.call.newest('newest save', 0);
      await waits(worker, 'newest save', 1);
      const runs = newest.call.newest('newest save', 0);
      expect(await superseded).toBe('LOCK_SUPERSEDED');
      await worker.call.endWork();
      expect(await Promise.all([works, runs])).toEqual(['ran', 'ran']);
      expect(await older.call.newestBegun()).toBe(0);
    });
  });

  it.concurrent('that dies while it waits hinders no later one', async () => {
    await withMachines([0, 0, 0], async (machines) => {
      const [worker, victim, heir] = machines as [Machine, Machine, Machine];
      const works = worker.call.newest('newest death', 'until told');
      await waitUntil(async () => (await worker.call.newestBegun()) > 0, { what: 'the work to begin' });
      const died = victim.call.newest('newest death', 0).catch(() => {});
      await waits(worker, 'newest death', 1);
      await victim.kill();
      await died;
      const runs = heir.call.newest('newest death', 0);
      await worker.call.endWork();
      expect(await Promise.all([works, runs])).toEqual(['ran', 'ran']);
    });
  });
});

describe.concurrent.each(STORES)('results that machines share on %s', { timeout: 60_000 }, (store) => {
  const withMachines = onStore(store);
  const built = async (machines: readonly Machine[]) =>
    (await Promise.all(machines.map((machine) => machine.call.built()))).flat();

  it.concurrent('callers of three machines that come together get one result, until its time is over', async () => {
    await withMachines([0, -MINUTE, MINUTE], async (machines) => {
      const build = { key: 'shared prices', callers: 8, work: 100, shareForMs: 60_000 };
      const callAll = async () =>
        (await Promise.all(machines.map((machine) => machine.call.coalesce(build)))).flat();
      const first = await callAll();
      expect(await built(machines)).toEqual([first[0]]);
      expect(first).toEqual(Array(24).fill(first[0]));
      expect(await callAll()).toEqual(first);
      const [one] = machines as [Machine];
      const brief = { key: 'shared brief', callers: 1, work: 0, shareForMs: 200 };
      const [before] = await one.call.coalesce(brief);
      await waitUntil(async () => !(await one.call.getResult('shared brief')), {
        what: 'the end of the result',
      });
      expect(await one.call.coalesce(brief)).not.toEqual([before]);
    });
  });

  it.concurrent('a machine that dies in its work is replaced by one that waits', async () => {
    await withMachines([0, 0], async (machines) => {
      const [victim, heir] = machines as [Machine, Machine];
      const build = { key: 'shared death', callers: 2, ttlMs: 1_000, work: 0 };
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
      const build = { key: 'shared pause', callers: 1, ttlMs: 1_000, work: 0, shareForMs: 60_000 };
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
      const set = (value: string, token: bigint, ttlMs = 60_000) =>
        setResult('shared tokens', value, token, ttlMs);
      expect((await getResult('shared tokens')) ?? undefined).toBeUndefined();
      await set('é', high);
      expect(await getResult('shared tokens')).toBe('é');
      // As numbers these two would be equal.
      await expect(set('late', high - 1n)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
      await set('again', high, 100);
      await waitUntil(async () => !(await getResult('shared tokens')), { what: 'the end of the text' });
      await expect(set('late', high - 1n)).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await set('newer', high + 1n);
      expect(await getResult('shared tokens')).toBe('newer');
    });
  });
});
