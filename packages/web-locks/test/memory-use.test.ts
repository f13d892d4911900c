import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memoryBackend } from '@locks/memory';
import { expect, it } from 'vitest';
import { webLocks } from '../src/index.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function collected(): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    await nextTurn();
    collect();
  }
}

it('keeps nothing of requests that are over, whichever way they ended', async () => {
  await using locks = webLocks(memoryBackend());
  const { signal } = new AbortController();
  const callbacks: WeakRef<() => unknown>[] = [];
  const made = (callback: () => unknown): (() => unknown) => {
    callbacks.push(new WeakRef(callback));
    return callback;
  };
  const request = async (): Promise<void> => {
    const controller = new AbortController();
    const stolen = locks.request(
      'b',
      made(() => new Promise(() => {})),
    );
    const outcomes = Promise.allSettled([
      locks.request(
        'a',
        { signal },
        made(() => 1),
      ),
      locks.request(
        'a',
        { ifAvailable: true },
        made(() => 2),
      ),
      locks.request(
        'a',
        made(() => Promise.reject(new Error('failed'))),
      ),
      locks.request(
        'a',
        { signal: controller.signal },
        made(() => 3),
      ),
      stolen,
      locks.request(
        'b',
        { steal: true },
        made(() => 4),
      ),
    ]);
    controller.abort();
    await outcomes;
  };
  await request();
  await collected();
  expect(callbacks.map((one) => one.deref())).toEqual(callbacks.map(() => undefined));
});

it('keeps nothing of a name that nobody uses', async () => {
  await using locks = webLocks(memoryBackend());
  const use = async (prefix: string): Promise<void> => {
    for (let number = 0; number < 10_000; number += 1) await locks.request(`${prefix} ${number}`, () => {});
    await collected();
  };
  await use('warm');
  const before = process.memoryUsage().heapUsed;
  await use('measured');
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(2_000_000);
});
