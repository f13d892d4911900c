import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { machineClock } from '../src/machine-clock.ts';
import { Transactions } from '../src/transactions.ts';
import { open, queue, request, take, until } from './fixture.ts';

/** As of thousands of names, after a commit of somebody else. */
const LOOK_MS = 120;
/** The pause between looks follows their cost upwards slowly: after so many it is more than two seconds. */
const LOOKS = 22;

test('a process whose looks take long goes on to show that it lives', { timeout: 60_000 }, async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const holder = await take(other, request('a', 60_000));
  let looks = 0;
  const { look } = Transactions.prototype;
  vi.spyOn(Transactions.prototype, 'look').mockImplementation(function (this: Transactions, work) {
    looks += 1;
    const end = performance.now() + LOOK_MS;
    while (performance.now() < end);
    return look.call(this, work);
  });
  const file = new DatabaseSync(path);
  const clients = file.prepare('SELECT alive_until AS until FROM clients');
  const clock = machineClock();
  const left: number[] = [];
  const sampling = setInterval(() => {
    for (const { until: end } of clients.all() as { until: number }[]) left.push(end - clock.nowMicros());
  }, 20);
  onTestFinished(() => {
    clearInterval(sampling);
    file.close();
    vi.restoreAllMocks();
  });
  const place = await queue(backend, request('a'));
  await until(() => looks >= LOOKS, 40_000);
  await delay(2_500);
  expect(left.length).toBeGreaterThan(100);
  expect(Math.min(...left)).toBeGreaterThan(0);
  await other.release(holder, { now: () => performance.now(), deadline: Infinity });
  await place.granted;
});
