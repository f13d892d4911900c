import { describe, expect, it } from 'vitest';
import type { FaultName } from '../src/index.ts';
import type { Planted } from './fixtures/planted.ts';
import { promiseOf, proveSqlite, proveSqliteUntil } from './sqlite-proof.ts';

const CONVICTIONS: readonly (readonly [Planted, convicted: string, faults: readonly FaultName[]])[] = [
  ['grants-twice', 'exclusion', ['clock']],
  ['renews-nothing', 'exclusion', ['clock']],
  ['never-expires', 'crash', ['kill']],
  ['forgets', 'exclusion', ['clock']],
  ['stale-tokens', 'tokens', ['clock']],
  ['last-first', 'order', ['clock']],
];

it('the conformance suite runs without a test runner, and finds the error too', {
  timeout: 240_000,
}, async () => {
  const proof = await proveSqlite('stale-tokens', { runMs: 1_000, faults: ['block'], suite: true });
  expect(proof.kept).toBe(false);
  expect(proof.suite?.passed).toBeGreaterThan(100);
  expect(proof.suite?.failed.map(({ id }) => id).join()).toMatch(/fencing|token/);
});

describe('a planted error is found', () => {
  it.each(CONVICTIONS)('%s breaks the promise %s', async (planted, convicted, faults) => {
    const proof = await proveSqliteUntil(
      planted,
      { runMs: 8_000, faults },
      (run) => promiseOf(run, convicted).verdict === 'broken',
    );
    const promise = promiseOf(proof, convicted);
    expect(proof.kept).toBe(false);
    expect(promise).toMatchObject({
      verdict: 'broken',
      breaches: [expect.stringMatching(/worker \d/)].concat(promise.breaches.slice(1)),
    });
  });
});
