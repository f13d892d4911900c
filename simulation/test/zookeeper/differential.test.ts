import { startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { type Command, ComparedSession, ServerNames, type Write } from './compared-session.ts';
import { ServedZookeeper } from './served-zookeeper.ts';

/** `LOCKS_STEPS=100000` runs so many commands; `LOCKS_SEED=n` replays a run. */
const STEPS = Number(process.env['LOCKS_STEPS'] ?? 600);
const SEED = Number(process.env['LOCKS_SEED'] ?? 1);
const TICK_MS = 200;
const SHORT_MS = 1_000;

let server: ZooKeeperServer;
let simulated: ServedZookeeper;
let addresses: readonly [real: string, simulated: string];
beforeAll(async () => {
  server = await startZookeeper({ config: [`tickTime=${TICK_MS}`] });
  simulated = new ServedZookeeper(TICK_MS);
  addresses = [server.address, await simulated.start()];
});
afterAll(async () => {
  await simulated.stop();
  await server.stop();
});

/** The same sessions at both servers. */
class Pair {
  readonly names = [new ServerNames(), new ServerNames()] as const;
  readonly sessions = new Map<string, readonly [ComparedSession, ComparedSession]>();

  async open(name: string, timeoutMs?: number): Promise<void> {
    const open = (index: 0 | 1): Promise<ComparedSession> =>
      ComparedSession.open(addresses[index], name, this.names[index], timeoutMs);
    this.sessions.set(name, [await open(0), await open(1)]);
  }

  of(name: string): readonly [ComparedSession, ComparedSession] {
    return this.sessions.get(name) as readonly [ComparedSession, ComparedSession];
  }

  async ask(name: string, command: Command): Promise<unknown> {
    const [real, other] = this.of(name);
    await real.ask(command);
    await other.ask(command);
    return other.heard.at(-1);
  }

  /** Both have heard the same, in the same order. */
  async agree(): Promise<void> {
    for (const [name, [real, other]] of this.sessions) {
      await waitUntil(() => real.heard.length === other.heard.length, {
        what: `what ${name} hears at both servers`,
        timeoutMs: 2_000,
      }).catch(() => {});
      expect(inOrder(other.heard), `${name}, seed ${SEED}`).toEqual(inOrder(real.heard));
    }
  }

  /** Both hear this now, or have heard it last. */
  async hears(name: string, last: unknown): Promise<void> {
    const isHeard = ({ heard }: ComparedSession): boolean =>
      JSON.stringify(heard.at(-1)) === JSON.stringify(last);
    await waitUntil(() => this.of(name).every(isHeard), { what: `${JSON.stringify(last)} at both servers` });
    await this.agree();
  }

  async end(name: string): Promise<void> {
    for (const session of this.of(name)) await session.end();
    this.sessions.delete(name);
  }
}

/** A server deletes the nodes of a session in an order of its own: what watches heard between two answers is sorted. */
function inOrder(heard: readonly unknown[]): unknown[] {
  const runs: unknown[][] = [];
  for (const entry of heard) {
    const [last] = runs.at(-1) ?? [];
    const follows = isOfWatch(entry) && isOfWatch(last);
    if (follows) runs.at(-1)?.push(entry);
    else runs.push([entry]);
  }
  return runs.flatMap((run) => run.map((entry) => JSON.stringify(entry)).toSorted());
}

function isOfWatch(entry: unknown): boolean {
  return Array.isArray(entry) && entry[0] === 'watch';
}

const PATHS = ['/a', '/b', '/a/x', '/a/y', '/b/x', '/a/x/deep', '/none/x'] as const;

function randomCommand(random: SeededRandom, made: readonly string[]): Command {
  const path = pathOf(random, made);
  switch (random.between(0, 8)) {
    case 0:
    case 1:
      return {
        kind: 'transaction',
        writes: Array.from({ length: random.between(1, 3) }, () => randomWrite(random, made)),
      };
    case 2:
      return { kind: 'children', path };
    case 3:
    case 4:
      return { kind: 'read', path, watches: random.chance(0.6) };
    default:
      return randomWrite(random, made);
  }
}

function randomWrite(random: SeededRandom, made: readonly string[]): Write {
  switch (random.between(0, 3)) {
    case 0:
    case 1:
      return {
        kind: 'create',
        path: random.pick(PATHS),
        flags: random.pick([0, 0, 1, 2, 3]),
        data: random.pick(['', 'é', '{}']),
      };
    case 2:
      return { kind: 'create', path: `${random.pick(['/a', '/b'])}/x.`, flags: 3, data: 'x' };
    default:
      return { kind: 'remove', path: pathOf(random, made), version: random.pick([-1, -1, -1, 0, 1]) };
  }
}

function pathOf(random: SeededRandom, made: readonly string[]): string {
  return made.length > 0 && random.chance(0.6) ? random.pick(made) : random.pick(PATHS);
}

it('answers, stats, refusals and watches are those of a real server, in their order', {
  timeout: 36_000_000,
}, async () => {
  const random = new SeededRandom(SEED);
  const pair = new Pair();
  const counts: Record<string, number> = {};
  const heardByEnded: unknown[] = [];
  let opened = 0;
  const open = async (): Promise<void> => {
    opened += 1;
    await pair.open(`session ${opened}`);
  };
  await open();
  await pair.ask('session 1', { kind: 'create', path: '/a', flags: 0, data: '' });
  await pair.ask('session 1', { kind: 'children', path: '/a' });
  await open();
  const made: string[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    const name = random.pick([...pair.sessions.keys()]);
    if (random.chance(0.02)) {
      heardByEnded.push(pair.of(name)[1].heard);
      // Its ephemeral nodes go with it.
      await pair.end(name);
      await open();
    } else if (random.chance(1 / 50)) {
      await pair.agree();
      for (const session of pair.of(name)) await session.reconnect();
    } else {
      const command = randomCommand(random, made);
      const [kind, answer] = (await pair.ask(name, command)) as [string, unknown];
      const outcome = `${kind}: ${typeof answer === 'number' ? answer : 'done'}`;
      counts[outcome] = (counts[outcome] ?? 0) + 1;
      if (kind === 'create' && typeof answer === 'string') made.unshift(answer);
      made.splice(6);
    }
    if (random.chance(0.1)) await pair.agree();
  }
  await pair.agree();
  const heard = JSON.stringify([heardByEnded, [...pair.sessions.values()].map(([, { heard: all }]) => all)]);
  expect(heard).toContain('"watch"');
  // Without these the steps would show little.
  expect(Object.keys(counts)).toEqual(
    expect.arrayContaining([
      'create: done',
      'create: -101',
      'create: -110',
      'transaction: done',
      'transaction: -101',
      'transaction: -110',
      'remove: -111',
      'remove: -103',
      'read: -101',
    ]),
  );
  if (process.env['LOCKS_STEPS'] !== undefined) console.log({ steps: STEPS, counts, opened });
  for (const name of pair.sessions.keys()) await pair.end(name);
});

it('a client that was away hears on its return what its watches missed, or that its session has ended', async () => {
  const pair = new Pair();
  await pair.open('watcher');
  await pair.open('away', SHORT_MS);
  for (const path of ['/gone', '/stays'])
    await pair.ask('watcher', { kind: 'create', path, flags: 0, data: '' });
  for (const path of ['/gone', '/stays']) await pair.ask('away', { kind: 'read', path, watches: true });
  await pair.ask('away', { kind: 'create', path: '/own', flags: 1, data: '' });
  await pair.ask('watcher', { kind: 'read', path: '/own', watches: true });
  const back = await Promise.all(pair.of('away').map((session) => session.fallSilent()));
  await pair.ask('watcher', { kind: 'remove', path: '/gone', version: -1 });
  for (const speak of back) speak();
  await pair.hears('away', ['watch', 2, '/gone']);

  const later = await Promise.all(pair.of('away').map((session) => session.fallSilent()));
  // In its own time.
  await simulated.pass(SHORT_MS + 2 * TICK_MS);
  await pair.hears('watcher', ['watch', 2, '/own']);
  for (const speak of later) speak();
  await pair.hears('away', 'expired');
});
