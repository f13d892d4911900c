import { expect, onTestFinished, test } from 'vitest';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { World } from '../../src/kernel/world.ts';
import { SimulatedProcess } from '../../src/process/simulated-process.ts';
import { runSchedules } from '../../src/run-schedules.ts';
import { freshDatabasePath, removeDatabase } from '../../src/sqlite/database-folder.ts';
import type { InterruptedAt, Interruption } from '../../src/sqlite/interruption.ts';
import type { ProcessFiles } from '../../src/sqlite/process-files.ts';
import { SimulatedMachine } from '../../src/sqlite/simulated-machine.ts';

interface Started {
  readonly process: SimulatedProcess;
  readonly files: ProcessFiles;
  insert(value: number): void;
  values(): unknown[];
}

/** A machine with two processes, which share a file with one table. */
function twoProcesses(wakeUps = { lost: 0, late: 0, lateMs: 0, twice: 0 }) {
  const world = new World(1, false);
  const realPath = freshDatabasePath();
  const committed: string[] = [];
  const machine = new SimulatedMachine(world, new SeededRandom(1), {
    realPath,
    platform: 'linux',
    wakeUps: () => wakeUps,
    committed: ({ name }) => committed.push(name),
  });
  onTestFinished(() => {
    machine.endsAll();
    removeDatabase(realPath);
  });
  const start = (name: string): Started => {
    const process = new SimulatedProcess(world, new SeededRandom(2), {
      name,
      drift: 0,
      wallOffset: 0,
      timerLatenessMs: 0,
    });
    const files = machine.starts(process, { pidSpace: 1, clockOffsetMicros: 0, hasWatches: true });
    const database = files.openDatabase({ timeout: 0 });
    database.exec('PRAGMA journal_mode = WAL');
    database.exec('CREATE TABLE IF NOT EXISTS rows (value INTEGER)');
    const insert = (value: number): void => {
      database.exec('BEGIN IMMEDIATE');
      database.exec(`INSERT INTO rows VALUES (${value})`);
      database.exec('COMMIT');
    };
    const values = (): unknown[] =>
      database
        .prepare('SELECT value FROM rows')
        .all()
        .map((row) => row['value']);
    return { process, files, insert, values };
  };
  const interrupt = ({ process }: Started, point: InterruptedAt, rest: Omit<Interruption, 'point'>): void =>
    machine.filesOf(process.pid)?.interruptNext({ point, ...rest });
  const until = (at: number): Promise<void> => {
    world.schedule(at, () => {});
    return world.run(
      () => world.now >= at,
      () => {},
    );
  };
  return { machine, committed, interrupt, until, one: start('one'), other: start('other') };
}

test.each(['begun', 'middle', 'before commit'] as const)(
  'a process that stands still in a transaction, %s, keeps the file from others until it goes on',
  async (point) => {
    const { one, other, interrupt, until, committed } = twoProcesses();
    const before = one.process.clock.monotonic();
    for (let tries = 0; committed.length === tries && !one.process.standsStill; tries += 1) {
      interrupt(one, point, { ms: 100, kills: false });
      one.insert(tries);
    }
    const written = committed.length;
    expect(one.process.standsStill).toBe(true);
    // The code that ran goes by the clock behind the pause.
    expect(one.process.clock.monotonic() - before).toBe(100);
    expect(other.values()).toHaveLength(written);
    expect(() => other.insert(2)).toThrow('database is locked');
    await until(200);
    expect(other.values()).toHaveLength(written + 1);
    expect(committed).toHaveLength(written + 1);
    other.insert(2);
    expect(other.values()).toContain(2);
  },
);

test('a process that stands still in the middle of a turn has the file for one transaction until it goes on', async () => {
  const { one, other, until, committed } = twoProcesses();
  const happened: string[] = [];
  one.process.stallIn({ ms: 100, place: 'clock read', passes: 0 });
  one.process.setTimeout(() => {
    one.process.passes('clock read');
    one.insert(1);
    // Its own connection reads what the others do not see before it goes on.
    expect(one.values()).toEqual([1]);
    expect(() => one.insert(2)).toThrow('database is locked');
    happened.push('turn');
  }, 1);
  await until(50);
  expect(happened).toEqual(['turn']);
  expect(committed).toEqual([]);
  expect(other.values()).toEqual([]);
  expect(() => other.insert(3)).toThrow('database is locked');
  await until(150);
  expect(committed).toEqual(['one']);
  expect(other.values()).toEqual([1]);
  one.insert(2);
  expect(other.values()).toEqual([1, 2]);
});

test('a process that is killed before its commit leaves nothing, and the file is free', async () => {
  const { one, other, interrupt, until, committed } = twoProcesses();
  interrupt(one, 'before commit', { ms: 50, kills: true });
  one.insert(1);
  await until(100);
  expect(one.process.isCrashed).toBe(true);
  expect(committed).toEqual([]);
  other.insert(2);
  expect(other.values()).toEqual([2]);
  expect(() => one.insert(3)).toThrow('has ended');
});

test('a process that is killed right behind its commit has written, and wakes nobody', async () => {
  const { one, other, interrupt, until } = twoProcesses();
  const { fs } = other.files;
  const woken: string[] = [];
  fs.openSync('/wake', 0o300);
  fs.watch('/wake', {}, (event) => woken.push(event));
  interrupt(one, 'after commit', { ms: 10, kills: true });
  one.insert(1);
  const own = one.files.fs;
  own.writeSync(own.openSync('/wake', 1));
  await until(100);
  expect(other.values()).toEqual([1]);
  expect(woken).toEqual([]);
});

test('a wake-up comes soon, late, twice or never', async () => {
  const wakeUps = { lost: 0, late: 0, lateMs: 0, twice: 0 };
  const { machine, one, other, until } = twoProcesses(wakeUps);
  const { fs } = other.files;
  const woken: number[] = [];
  fs.openSync('/wake', 0o300);
  fs.watch('/wake', {}, () => woken.push(machine.world.now));
  const own = one.files.fs;
  const write = async (changes: Partial<typeof wakeUps>): Promise<number[]> => {
    Object.assign(wakeUps, { lost: 0, late: 0, lateMs: 0, twice: 0 }, changes);
    const from = machine.world.now;
    own.writeSync(own.openSync('/wake', 1));
    await until(from + 1_000);
    return woken.splice(0).map((at) => at - from);
  };
  const [soon = Infinity] = await write({});
  expect(soon).toBeLessThan(1);
  const [late = 0] = await write({ late: 1, lateMs: 500 });
  expect(late).toBeGreaterThan(1);
  expect(await write({ twice: 1 })).toHaveLength(2);
  expect(await write({ lost: 1 })).toEqual([]);
});

test('on SQLite every kind of fault happens, and no promise is broken', async () => {
  const kinds = [
    ...['close', 'crash', 'full', 'kill in a transaction', 'late wake-up', 'lost wake-up', 'pause'],
    ...['pause in a transaction', 'read-only', 'sleep', 'stall', 'store away', 'wake-up twice', 'wall clock'],
  ];
  const seen = new Set<string>();
  for (let seed = 1; seed < 600 && !kinds.every((kind) => seen.has(kind)); seed += 50) {
    const { violations, faults } = await runSchedules({ backend: 'sqlite', seed, schedules: 50 });
    expect(violations).toEqual([]);
    for (const kind of Object.keys(faults)) seen.add(kind);
  }
  expect([...seen]).toEqual(expect.arrayContaining(kinds));
});
