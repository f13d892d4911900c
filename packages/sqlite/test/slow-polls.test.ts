import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { machineClock } from '../src/machine-clock.ts';
import { Transactions } from '../src/transactions.ts';
import { open, queue, request, take, until } from './fixture.ts';

/** What a poll of thousands of names takes after a commit of another process. */
const POLL_MS = 120;
/** The pause between polls follows their cost upwards slowly: after so many it is more than two seconds. */
const POLLS = 22;

test('a process whose polls take long still sends its heartbeat in time', { timeout: 60_000 }, async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const holder = await take(other, request('a', 60_000));
  let polls = 0;
  const { poll } = Transactions.prototype;
  vi.spyOn(Transactions.prototype, 'poll').mockImplementation(function (this: Transactions, work) {
    polls += 1;
    const end = performance.now() + POLL_MS;
    while (performance.now() < end);
    return poll.call(this, work);
  });
  const file = new DatabaseSync(path);
  const clients = file.prepare('SELECT alive_until AS until FROM clients');
  const clock = machineClock();
  const left: number[] = [];
  const ends = new Set<number>();
  const sampling = setInterval(() => {
    for (const { until: end } of clients.all() as { until: number }[]) {
      left.push(end - clock.nowMicros());
      ends.add(end);
    }
  }, 20);
  onTestFinished(() => {
    clearInterval(sampling);
    file.close();
    vi.restoreAllMocks();
  });
  const waiter = await queue(backend, request('a'));
  await until(() => polls >= POLLS, 40_000);
  const beats = ends.size;
  await until(() => ends.size >= beats + 5 || left.some((each) => each <= 0), 20_000);
  expect(Math.min(...left)).toBeGreaterThan(0);
  await other.release(holder, { now: () => performance.now(), deadline: Infinity });
  await waiter.granted;
});
