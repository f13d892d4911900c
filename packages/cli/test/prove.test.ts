import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Proof } from '@locks/prove';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { folder, locks, locksHere, Program } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();

it('proves a Redis: a report in words, as JSON and as a page, and nothing is left in the store', async () => {
  const dir = folder();
  const [json, html] = [join(dir, 'proof.json'), join(dir, 'proof.html')];
  const outcome = await locks(
    redis.url,
    'prove',
    '--minutes',
    '0.1',
    '--seed',
    '4',
    '--json',
    json,
    '--html',
    html,
  );
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  expect(outcome.stdout).toMatch(/^kept {9}While a holder is told that it holds/m);
  expect(outcome.stdout).toMatch(/^LOCKS_URL=… locks prove --minutes 0\.1 --seed 4\n$/m);
  const proof = JSON.parse(readFileSync(json, 'utf8')) as Proof;
  expect(proof).toMatchObject({ kept: true, seed: 4, backend: 'redis-ioredis' });
  expect(proof.faults.some(({ times }) => times > 0)).toBe(true);
  expect(readFileSync(html, 'utf8')).toContain('<svg');
  expect((await redis.used()).filter((name) => name.startsWith('locks-prove/'))).toEqual([]);
});

it('Ctrl-C ends it early, with a report, and cleans up', async () => {
  const program = new Program(['prove', '--seed', '1'], redis.url);
  await waitUntil(async () => (await redis.used()).some((name) => name.startsWith('locks-prove/')), {
    what: 'workers that hold locks',
  });
  program.child.kill('SIGINT');
  const outcome = await program.outcome;
  expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('ended early') as string });
  expect((await redis.used()).filter((name) => name.startsWith('locks-prove/'))).toEqual([]);
});

describe('is refused at once, before anything is tried', () => {
  it.each([
    [['--faults', 'kil'], 'unknown fault "kil": did you mean kill?'],
    [['--faults', ''], 'unknown fault ""'],
    [['--minutes', '0'], '--minutes takes a number from 0.05 to 1440, not "0"'],
    [['--minutes', 'five'], '--minutes takes a number'],
    [['--minutes', '2000'], '--minutes takes a number'],
    [['--seed', '-1'], '--seed'],
    [['--seed', '1.5'], '--seed takes a whole number'],
    [['--html', '/nowhere/at/all/proof.html'], '--html: /nowhere/at/all/proof.html cannot be written'],
    [['--backend', './none.mjs'], '--backend: there is no file ./none.mjs'],
    [['--url', 'gopher://x'], 'no backend for "gopher:"'],
    [['name'], 'prove takes no name'],
  ])('%j', async (args, message) => {
    const outcome = await locksHere(redis.url, 'prove', ...args);
    expect(outcome).toMatchObject({
      code: 64,
      stdout: '',
      stderr: expect.stringContaining(message) as string,
    });
  });

  it('a store that does not answer', async () => {
    const outcome = await locksHere('redis://127.0.0.1:1', 'prove');
    expect(outcome).toMatchObject({ code: 69, stdout: '' });
  });
});
