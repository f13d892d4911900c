// A client process of `bench languages`: our backends and their bare clients on one task, which is the only argument.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { contenderNamed } from '../../src/contenders/all.ts';
import { dwell, machineNow, sleepUntil } from '../../src/measure/clock.ts';
import type { Task } from '../../src/languages/drivers.ts';

type Take = (name: string, lane: number) => Promise<() => Promise<unknown>>;

const HOLDS_AT_ONCE = 16;
const GRACE_MS = 200;

const task = JSON.parse(process.argv[2] ?? '') as Task;
const nameOf = (lane: number): string => (task.own ? `${task.name}:${lane}` : task.name);
const take = await open();
await (task.op === 'hold' ? hold() : loop());

async function open(): Promise<Take> {
  const contender = await contenderNamed('redis', task.library);
  const url = `redis://${task.address}`;
  if (contender.openLocks === undefined) {
    const session = await contender.open(url);
    return (name) => session.acquire(name);
  }
  const { locks } = await contender.openLocks(url, task.ttlMs);
  const options = { waitMs: Number.POSITIVE_INFINITY };
  const lockOf = (name: string, lane: number) => {
    if (task.kind === 'semaphore') return locks.semaphore(name, task.capacity);
    if (task.kind === 'lock') return locks.lock(name);
    const both = locks.readWriteLock(name);
    return lane === 0 ? both.write : both.read;
  };
  return async (name, lane) => {
    const lease = await lockOf(name, lane).acquire(options);
    return () => lease.release();
  };
}

async function loop(): Promise<void> {
  const entries: number[][] = [];
  const waiting = new Map<number, number>();
  await (await take(`${task.name}:warm-up:${process.pid}`, 0))();
  const { startAt, stopAt } = await whenToRun();
  const lane = async (index: number): Promise<void> => {
    while (machineNow() < stopAt) {
      const asked = machineNow();
      waiting.set(index, asked);
      const release = await take(nameOf(index), index);
      const entered = machineNow();
      if (task.sectionMs > 0) await dwell(task.sectionMs);
      const left = machineNow();
      await release();
      waiting.delete(index);
      entries.push([index, asked, entered, left]);
    }
  };
  await sleepUntil(startAt);
  const lanes = Promise.all(Array.from({ length: task.lanes }, (_, index) => lane(index)));
  await Promise.race([lanes, sleepUntil(stopAt + GRACE_MS)]);
  process.stdout.write(`${JSON.stringify({ entries, unserved: [...waiting] })}\n`, () => process.exit());
}

/** Says that it is ready, and reads when to begin and to end. */
async function whenToRun(): Promise<{ readonly startAt: number; readonly stopAt: number }> {
  console.log('ready');
  const [line] = (await once(createInterface(process.stdin), 'line')) as [string];
  const [startAt = 0, stopAt = 0] = line.split(' ').map(Number);
  return { startAt, stopAt };
}

/** Takes its locks, says so, and keeps them until it is killed. */
async function hold(): Promise<void> {
  const lanes = Array.from({ length: task.lanes }, (_, lane) => lane);
  await Promise.all(
    Array.from({ length: HOLDS_AT_ONCE }, async () => {
      for (let lane = lanes.pop(); lane !== undefined; lane = lanes.pop()) await take(nameOf(lane), lane);
    }),
  );
  console.log('held');
  setInterval(() => undefined, 60_000);
}
