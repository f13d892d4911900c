import { Buffer } from 'node:buffer';
import { type EtcdServer, startEtcd } from '@locks/test-servers';
import { Etcd3, type ILeaseKeepAliveResponse } from 'etcd3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SimulatedEtcd } from '../../src/etcd/simulated-etcd.ts';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { World } from '../../src/kernel/world.ts';
import { type ComparedServer, Heard, LeaseNames } from './compared-server.ts';
import { RandomCommands } from './random-command.ts';

/** `LOCKS_STEPS=100000` runs so many commands; `LOCKS_SEED=n` replays a run. */
const STEPS = Number(process.env['LOCKS_STEPS'] ?? 600);
const SEED = Number(process.env['LOCKS_SEED'] ?? 1);
const LONG_SECONDS = 600;
/** Longer than a server takes to look at watches that are behind. */
const BEHIND_MS = 150;
const HEARD_WITHIN_MS = 10_000;

let server: EtcdServer;
let client: Etcd3;
beforeAll(async () => {
  // Its shortest lease has one second.
  server = await startEtcd({ electionTimeoutMs: 500 });
  client = new Etcd3({ hosts: server.url });
});
afterAll(async () => {
  client.close();
  await server.stop();
});

async function real(heard: Heard): Promise<ComparedServer> {
  const watches = await client.watchClient.watch();
  watches.on('data', (response) => heard.add(response));
  watches.on('error', () => {});
  const keepAlives = await client.leaseClient.leaseKeepAlive();
  keepAlives.on('error', () => {});
  const answers: ((response: ILeaseKeepAliveResponse) => void)[] = [];
  keepAlives.on('data', (response) => answers.shift()?.(response));
  return {
    txn: async (request) => await client.kv.txn(request),
    leaseGrant: async (TTL) => await client.leaseClient.leaseGrant({ TTL }),
    leaseRevoke: async (ID) => await client.leaseClient.leaseRevoke({ ID }),
    timeToLive: async (ID) => await client.leaseClient.leaseTimeToLive({ ID }),
    keepAlive: async (ID) => {
      const answer = new Promise<ILeaseKeepAliveResponse>((resolve) => answers.push(resolve));
      keepAlives.write({ ID });
      return (await answer).TTL;
    },
    // Watches of one stream are created in the order of the requests, and written keys come behind their creation.
    watch: async (request) => {
      const before = heard.count;
      watches.write(request);
      await until(() => heard.count > before);
    },
    settle: async (ms) => await new Promise((resolve) => setTimeout(resolve, ms)),
    compact: async (revision) => void (await client.kv.compact({ revision })),
  };
}

function simulated(world: World, heard: Heard): ComparedServer {
  const etcd = new SimulatedEtcd(world, {
    drift: 0,
    shortestSeconds: 1,
    idleUntil: () => 0,
    written: () => {},
  });
  const watches = etcd.watches(
    (_, response) => heard.add(response),
    () => {},
  );
  const answers: ((ttl: string) => void)[] = [];
  const keepAlives = etcd.keepAlives(
    ({ TTL }) => answers.shift()?.(TTL),
    () => {},
  );
  return {
    txn: async (request) => etcd.txn(request),
    leaseGrant: async (seconds) => etcd.leaseGrant(seconds),
    leaseRevoke: async (id) => etcd.leaseRevoke(id),
    timeToLive: async (id) => etcd.leaseTimeToLive(id),
    keepAlive: async (id) =>
      await new Promise((resolve) => {
        answers.push(resolve);
        keepAlives.received(id);
      }),
    watch: async (request) => watches.received(request),
    settle: async (ms) => {
      const end = world.now + ms;
      world.schedule(end, () => {});
      await world.run(
        () => world.now >= end,
        () => {},
      );
    },
    compact: async () => etcd.compact(),
  };
}

async function until(isTrue: () => boolean): Promise<void> {
  const began = performance.now();
  while (!isTrue() && performance.now() < began + HEARD_WITHIN_MS)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

/** The same commands on both servers; an answer, or the class of the refusal. */
class Pair {
  readonly names = [new LeaseNames(), new LeaseNames()] as const;
  readonly heard = [new Heard(this.names[0]), new Heard(this.names[1])] as const;
  readonly servers: readonly [ComparedServer, ComparedServer];
  refused = 0;

  private constructor(
    servers: (heard: readonly [Heard, Heard]) => readonly [ComparedServer, ComparedServer],
  ) {
    this.servers = servers(this.heard);
  }

  static async open(world: World): Promise<Pair> {
    const heard: Heard[] = [];
    const opened: ComparedServer[] = [];
    const pair = new Pair((each) => {
      heard.push(...each);
      return opened as unknown as readonly [ComparedServer, ComparedServer];
    });
    opened.push(await real(heard[0] as Heard), simulated(world, heard[1] as Heard));
    return pair;
  }

  async both(ask: (server: ComparedServer, names: LeaseNames) => Promise<unknown>): Promise<unknown> {
    const answers = [];
    for (const index of [0, 1] as const)
      answers.push(
        await ask(this.servers[index], this.names[index]).catch((error: unknown) => kindOf(error)),
      );
    const [expected, given] = answers;
    expect(given, `seed ${SEED}`).toEqual(expected);
    if (typeof given === 'string') this.refused += 1;
    return given;
  }

  async grant(name: string, seconds: number): Promise<void> {
    await this.both(async (each, names) => {
      const { ID, TTL } = await each.leaseGrant(seconds);
      names.add(name, ID);
      return { TTL };
    });
  }

  async watchesAgree(): Promise<void> {
    const [real, simulated] = this.heard;
    await this.servers[1].settle(BEHIND_MS);
    await until(() => real.count >= simulated.count);
    expect(simulated.all, `seed ${SEED}`).toEqual(real.all);
  }
}

function kindOf(error: unknown): string {
  const { name } = (error as Error).constructor;
  return name === 'EtcdLeaseInvalidError' ? name : 'refused';
}

it('transactions, leases, reads and watches are those of a real server', {
  timeout: 36_000_000,
}, async () => {
  const random = new SeededRandom(SEED);
  const commands = new RandomCommands(random.fork(1));
  const pair = await Pair.open(new World(SEED, false));
  let revision = 1;
  let watches = 0;
  const counts: Record<string, number> = {};
  for (let step = 0; step < STEPS; step += 1) {
    const kind = random.pick(KINDS);
    counts[kind] = (counts[kind] ?? 0) + 1;
    const name = commands.lease();
    switch (kind) {
      case 'txn': {
        const request = commands.txn(revision);
        const answer = await pair.both(async (each, names) =>
          names.answer(await each.txn(names.inRequest(request))),
        );
        if (typeof answer === 'object')
          ({ revision } = { revision: Number((answer as { revision: string }).revision) });
        break;
      }
      case 'grant':
        commands.leases.push(`lease ${step}`);
        await pair.grant(`lease ${step}`, LONG_SECONDS + step);
        break;
      case 'revoke':
        await pair.both(async (each, names) => void (await each.leaseRevoke(names.idOf(name))));
        if (name !== 'none') commands.leases.splice(commands.leases.indexOf(name), 1);
        break;
      case 'keep alive':
        await pair.both(async (each, names) => ({ TTL: await each.keepAlive(names.idOf(name)) }));
        break;
      case 'time':
        await pair.both(async (each, names) => ({
          granted: (await each.timeToLive(names.idOf(name))).grantedTTL,
        }));
        break;
      case 'watch': {
        watches += 1;
        const start = Math.max(1, revision + random.pick([1, 1, 0, -3, -30]));
        const create = {
          watch_id: watches,
          key: Buffer.from(random.pick(['a', 'a/1', 'b'])),
          ...(random.chance(0.5) && { range_end: Buffer.from('c') }),
          ...(random.chance(0.7) && { start_revision: start }),
          ...(random.chance(0.5) && { filters: ['Noput' as const], prev_kv: true }),
        };
        for (const each of pair.servers) await each.watch({ create_request: create });
        // A watch that is behind is compared when it has come to the present.
        await pair.watchesAgree();
        break;
      }
      case 'compact':
        await pair.watchesAgree();
        if (revision > 1) for (const each of pair.servers) await each.compact(revision).catch(() => {});
        break;
      default:
        kind satisfies never;
    }
  }
  await pair.watchesAgree();
  // Without these the steps would show little.
  expect(pair.refused).toBeGreaterThan(0);
  expect(pair.heard[0].count).toBeGreaterThan(STEPS / 10);
  expect(JSON.stringify(pair.heard[0].all)).toContain('cancelled, compacted');
  if (process.env['LOCKS_STEPS'] !== undefined)
    console.log({ steps: STEPS, counts, refused: pair.refused, heard: pair.heard[0].count });
});

const KINDS = [
  ...Array.from({ length: 30 }, () => 'txn' as const),
  'grant',
  'grant',
  'revoke',
  'keep alive',
  'time',
  'watch',
  'compact',
] as const;

it('a lease that ends takes its keys with it in one step, and is not there for a keep-alive', async () => {
  const pair = await Pair.open(new World(SEED, false));
  // Both have written the same so far: what a watch tells is compared by what it tells of, and not by revisions.
  await pair.grant('short', 1);
  const put = (key: string, lease: string) => ({
    request_put: { key: Buffer.from(key), value: Buffer.from('x'), lease },
  });
  const gone: unknown[] = [];
  for (const index of [0, 1] as const) {
    const [each, names] = [pair.servers[index], pair.names[index]];
    const lease = names.idOf('short');
    await each.txn({
      compare: [],
      success: [put('ends/1', lease), put('ends/2', lease), put('stays', '0')],
      failure: [],
    });
    await each.watch({
      create_request: { watch_id: 1, key: Buffer.from('ends/'), range_end: Buffer.from('ends0') },
    });
    expect(await each.keepAlive(lease)).toBe('1');
    // The answer comes when the lease is gone, if it is asked for after its end.
    for (let waited = 0; waited < 6_000 && pair.heard[index].count < 3; waited += 100) await each.settle(100);
    const events = Object.values(pair.heard[index].all as Record<string, [string, unknown[]][]>).flat();
    const [, first, second] = events;
    gone.push([first?.[0], first?.[1][0], second?.[0], second?.[1][0], first?.[1][3] === second?.[1][3]]);
    expect(await each.keepAlive(lease)).toBe('0');
    expect((await each.timeToLive(lease)).TTL).toBe('-1');
  }
  expect(gone[0]).toEqual(['Delete', 'ends/1', 'Delete', 'ends/2', true]);
  expect(gone[1]).toEqual(gone[0]);
});

it('errors have the names by which the adapter tells them apart', async () => {
  const ours = await import('../../src/etcd/etcd-failures.ts');
  const theirs = (await import('etcd3')) as unknown as Record<string, unknown>;
  const names = [
    'GRPCUnavailableError',
    'GRPCDeadlineExceededError',
    'GRPCCancelledError',
    'EtcdLeaseInvalidError',
  ] as const;
  for (const name of names) {
    expect(ours[name].name).toBe(name);
    expect(theirs[name]).toBeTypeOf('function');
  }
});
