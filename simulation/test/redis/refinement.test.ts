import { beforeAll, expect, it } from 'vitest';
import { scripts } from '../../../packages/redis-protocol/src/generated/scripts.ts';
import { holdersKey, keysOfLock } from '../../../packages/redis-protocol/src/keys.ts';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { viewOf } from '../../src/redis/lock-view.ts';
import { LuaScripts } from '../../src/redis/lua-scripts.ts';
import { Refinement, RefinementError } from '../../src/redis/refinement.ts';
import { SimulatedRedis } from '../../src/redis/simulated-redis.ts';
import type { ScriptName } from './random-step.ts';

/** `LOCKS_STEPS=1000000` runs so many scripts; `LOCKS_SEED=n` replays a run. */
const STEPS = Number(process.env['LOCKS_STEPS'] ?? 12_000);
const SEED = Number(process.env['LOCKS_SEED'] ?? 1);
const STEPS_PER_KEYSPACE = 80;
const LOCKS = ['lock::a', 'lock::b'];
/** The channels of processes; nobody listens to the last one. */
const DEAF = '=c4';
const NOTIFIES = ['=c1', '~c2', '!c3', DEAF];
const LISTENED = ['c1', 'c2'];

let lua: LuaScripts;
beforeAll(async () => {
  lua = await LuaScripts.load();
});

interface Acquisition {
  readonly id: string;
  readonly lock: string;
  readonly ttl: string;
  readonly limit: string;
  readonly weight: string;
  readonly notify: string;
  position: number | undefined;
}

/** Processes that use the scripts as the adapters do, and a server that checks each step. */
class Run {
  readonly counts = new Map<string, number>();
  handOffs = 0;
  readonly #random: SeededRandom;
  readonly #server: SimulatedRedis;
  readonly #refinement: Refinement;
  #acquisitions: Acquisition[] = [];
  #micros = 1_763_840_000_000_000;
  #created = 0;
  #areLocks = true;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#server = new SimulatedRedis({ lua, micros: () => this.#micros });
    this.#refinement = new Refinement(this.#server, () => this.#micros);
    for (const { source } of Object.values(scripts)) this.#server.execute(['SCRIPT', 'LOAD', source]);
    for (const channel of LISTENED) this.#server.subscribe(channel, () => (this.handOffs += 1));
  }

  clear(): void {
    this.#server.execute(['FLUSHALL']);
    this.#acquisitions = [];
    this.#areLocks = this.#random.chance(0.5);
  }

  step(): void {
    this.#passTime();
    const random = this.#random;
    const lock = random.pick(LOCKS);
    const held = this.#holding(lock);
    const holder = held.length > 0 ? random.pick(held) : undefined;
    const known = this.#acquisitions.filter((acquisition) => acquisition.lock === lock);
    const any = known.length > 0 ? random.pick(known) : undefined;
    const choice = random.between(0, 19);
    if (choice <= 5)
      this.#acquire(any !== undefined && random.chance(0.15) ? any : this.#create(lock), false);
    else if (choice === 6) this.#many();
    else if (choice === 7) this.#steal(lock, held);
    else if (choice <= 10) this.#release(holder ?? any);
    else if (choice === 11) this.#abandon(any);
    else if (choice <= 14) this.#check(random.pick(NOTIFIES));
    else if (choice === 15) this.#downgrade(holder);
    else if (choice === 16) this.#resize(lock);
    else if (choice === 17) this.#renew(holder ?? any);
    else this.#forceRelease(lock, random.chance(0.5) ? holder : undefined);
  }

  #passTime(): void {
    const random = this.#random;
    if (random.chance(0.9)) this.#micros += random.between(0, 20_000);
    else if (random.chance(0.7)) this.#micros += random.between(0, 2_500_000);
    else this.#micros += random.between(0, 40_000_000);
    // In its last millisecond an exclusive hold is still held here, and not in the rules.
    const isLast = (lock: string) => this.#server.execute(['PTTL', lock]) === 0;
    while (LOCKS.some(isLast)) this.#micros += 1_000;
  }

  #create(lock: string): Acquisition {
    const random = this.#random;
    const areLocks = random.chance(0.9) ? this.#areLocks : !this.#areLocks;
    const acquisition: Acquisition = {
      id: `id-${++this.#created}`,
      lock,
      ttl: random.pick(['60', '1500', '30000']),
      limit: areLocks ? '0' : random.pick(['4', '4', '4', '12']),
      weight: areLocks ? random.pick(['', '0']) : random.pick(['1', '2', '4']),
      notify: random.pick(NOTIFIES),
      position: undefined,
    };
    this.#acquisitions.push(acquisition);
    return acquisition;
  }

  #acquire(acquisition: Acquisition, isStolen: boolean): void {
    const { id, lock, ttl, limit, weight, notify, position } = acquisition;
    const isPlain = weight === '' && !isStolen && this.#random.chance(0.7);
    const isWaiting = position !== undefined;
    // A check has put it into the queue as silent: sent again it would wait twice, until the next check.
    if (isWaiting && notify === DEAF) return;
    const enqueue = isWaiting || this.#random.chance(0.8) ? [notify, '5000', '', ''] : ['', '', '', ''];
    const args = isPlain
      ? [id, ttl, 'label', ...enqueue]
      : [id, ttl, 'label', ...enqueue, limit, weight, ...(isStolen ? ['steal'] : [])];
    const all = allKeys(lock);
    const reply = this.#run('acquire', isPlain ? all.slice(0, 3) : all, args);
    if (Array.isArray(reply) && reply[0] === 'waiting') acquisition.position = Number(reply[1]);
  }

  #many(): void {
    const wanted = this.#random.chance(0.5) ? LOCKS : [this.#random.pick(LOCKS)];
    const created = wanted.map((lock) => this.#create(lock));
    const args = created.flatMap(({ id, ttl, limit, weight }) => [id, ttl, 'label', limit, weight]);
    this.#run('many', wanted.flatMap(allKeys), args);
  }

  /** Of the family of those that live on the lock: a steal may mix two families, and then each script sees another of them. */
  #steal(lock: string, held: readonly Acquisition[]): void {
    const thief = this.#create(lock);
    const { waiters } = this.#view(lock).record;
    const living = [...held.map(({ limit }) => limit), ...waiters.map(({ id }) => this.#find(id)?.limit)];
    if (living.every((limit) => limit === thief.limit) && thief.limit === '0') this.#acquire(thief, true);
  }

  #release(acquisition: Acquisition | undefined): void {
    if (acquisition === undefined) return;
    const { id, lock, weight, notify } = acquisition;
    const all = allKeys(lock);
    const isShare = this.#view(lock).isShared;
    if (isShare) this.#run('release', all, [id, notify, weight === '' ? '0' : weight]);
    else
      this.#run('release', weight === '' ? all.slice(0, 3) : all, [
        id,
        notify,
        ...(weight === '' ? [] : [weight]),
      ]);
  }

  #abandon(acquisition: Acquisition | undefined): void {
    if (acquisition === undefined) return;
    const { id, lock, notify } = acquisition;
    const forms = [notify, `!${notify.slice(1)}`].map((form) => member(acquisition, form));
    this.#run('abandon', allKeys(lock).slice(0, 3), [id, notify, ...forms]);
    this.#acquisitions = this.#acquisitions.filter((other) => other !== acquisition);
  }

  /** The heartbeat of one process: all its waiters. */
  #check(notify: string): void {
    const waiting = this.#acquisitions.filter(
      (each) => each.notify === notify && each.position !== undefined,
    );
    const locks = LOCKS.filter((lock) => waiting.some((each) => each.lock === lock));
    if (locks.length === 0) return;
    const args = ['5000', notify, ''];
    for (const lock of locks) {
      const here = waiting.filter((each) => each.lock === lock);
      args.push(String(here.length));
      for (const each of here) {
        args.push(member(each, notify), String(each.position), each.limit === '0' ? '' : each.limit);
      }
    }
    const keys = locks.flatMap((lock) => allKeys(lock).slice(0, 3));
    this.#run('check', keys, args);
    // Who has learned that it holds waits no longer; who does not hold goes on waiting.
    for (const each of waiting) {
      if (this.#view(each.lock).record.holds.some(({ id }) => id === each.id)) each.position = undefined;
    }
  }

  #downgrade(acquisition: Acquisition | undefined): void {
    if (acquisition === undefined || acquisition.weight !== '') return;
    this.#run('downgrade', allKeys(acquisition.lock), [acquisition.id, acquisition.notify]);
  }

  #resize(lock: string): void {
    const limit = this.#random.pick(['1', '4', '12']);
    this.#run('resize', allKeys(lock), [limit, this.#random.pick(NOTIFIES)]);
  }

  #renew(one: Acquisition | undefined): void {
    if (one === undefined) return;
    const { id, lock, ttl } = one;
    const hold = this.#view(lock).record.holds.find((each) => each.id === id);
    // Or by an earlier grant of the same acquisition.
    const token = String((hold?.token ?? 0) - (this.#random.chance(0.1) ? 1 : 0));
    if (this.#random.chance(0.5)) this.#run('renew', [lock], [`${id}|-|${token}|`, ttl]);
    else this.#run('renewShares', [lock, holdersKey(keysOfLock(lock))], [id, token, ttl]);
  }

  #forceRelease(lock: string, only: Acquisition | undefined): void {
    const ids = only === undefined ? [] : [only.id];
    this.#run('forceRelease', allKeys(lock), [this.#random.pick(NOTIFIES), ...ids]);
  }

  #run(name: ScriptName, keys: readonly string[], args: readonly string[]): unknown {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    const script = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const command = ['EVALSHA', scripts[name].sha1, String(keys.length), ...keys, ...args];
    return this.#refinement.run({ script, keys, args }, () => this.#server.execute(command));
  }

  #view(lock: string) {
    return viewOf(this.#server, lock, keysOfLock(lock).token, Math.floor(this.#micros / 1000));
  }

  #holding(lock: string): readonly Acquisition[] {
    return this.#view(lock).record.holds.flatMap(({ id }) => this.#find(id) ?? []);
  }

  #find(id: string): Acquisition | undefined {
    return this.#acquisitions.find((acquisition) => acquisition.id === id);
  }
}

function allKeys(lock: string): string[] {
  const keys = keysOfLock(lock);
  return [keys.lock, keys.token, keys.queue, holdersKey(keys)];
}

function member({ id, ttl, weight }: Acquisition, notify: string): string {
  return `${id}|${ttl}${weight && `:${weight}`}|${notify}|label`;
}

it('every script does what the rules of a lock say', { timeout: 36_000_000 }, () => {
  const run = new Run(SEED);
  for (let step = 0; step < STEPS; step++) {
    if (step % STEPS_PER_KEYSPACE === 0) run.clear();
    run.step();
  }
  const expected: readonly ScriptName[] = [
    'abandon',
    'acquire',
    'check',
    'downgrade',
    'forceRelease',
    'many',
    'release',
    'renew',
    'renewShares',
    'resize',
  ];
  expect([...run.counts.keys()].toSorted()).toEqual(expected);
  expect(run.handOffs).toBeGreaterThan(0);
  if (process.env['LOCKS_STEPS'] !== undefined) console.log(Object.fromEntries(run.counts), run.handOffs);
});

it('a script that forgets the hand-off is noticed', () => {
  const server = new SimulatedRedis({ lua, micros: () => 1_763_840_000_000_000 });
  const refinement = new Refinement(server, () => 1_763_840_000_000_000);
  const keys = allKeys('lock::a');
  const acquire = (id: string, ...enqueue: string[]) => {
    server.execute([
      'EVAL',
      scripts.acquire.source,
      '3',
      ...keys.slice(0, 3),
      id,
      '30000',
      'label',
      ...enqueue,
    ]);
  };
  acquire('holder');
  acquire('waiter', '~channel', '5000');
  const call = { script: 'release', keys: keys.slice(0, 3), args: ['holder', '=me'] };
  expect(() => refinement.run(call, () => server.execute(['DEL', 'lock::a']))).toThrow(RefinementError);
});
