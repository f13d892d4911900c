import { afterEach, expect, it } from 'vitest';
import { type Asked, Checkpoint } from '../src/conduct/checkpoint.ts';
import { Progress } from '../src/measure/progress.ts';

const suite = `test-${process.pid}`;
const asked: Asked = { rows: ['waiters'], contenders: ['ours'], rounds: 3, quick: false, code: {} };

afterEach(() => Checkpoint.begin(suite, asked).end());

it('continues after the parts that are done, and keeps no part that failed', async () => {
  const first = new Progress(() => {}, Checkpoint.begin(suite, asked));
  const inner = (): Promise<number | undefined> => first.part('inner', async () => 1);
  expect(await first.part('waiters', inner)).toBe(1);
  expect(await first.part('kill', () => Promise.reject(new Error('no server')))).toBeUndefined();
  expect(first.failures).toEqual(['kill: no server']);
  expect(Checkpoint.partsLeft(suite)).toBe(1);

  const second = new Progress(() => {}, Checkpoint.resume(suite, asked));
  const ran: string[] = [];
  const measure = (what: string) => second.part(what, async () => ran.push(what));
  // The name of a part inside of another one need not be unique.
  for (const what of ['waiters', 'inner', 'kill']) await measure(what);
  expect(ran).toEqual(['inner', 'kill']);
  expect(second.failures).toEqual([]);
});

it('does not continue a run with other options or of other code, or one that is whole', async () => {
  const checkpoint = Checkpoint.begin(suite, asked);
  checkpoint.keep('waiters', { seconds: 1, result: 1 });
  expect(() => Checkpoint.resume(suite, { ...asked, rounds: 5 })).toThrow('leave out --resume');
  expect(() => Checkpoint.resume(suite, { ...asked, code: { '@locks/core': '1' } })).toThrow('other code');
  checkpoint.end();
  expect(() => Checkpoint.resume(suite, asked)).toThrow('broke off');
});
