import { describe, expect, it } from 'vitest';
import { runMutants } from '../src/mutants/run-mutants.ts';

describe('the conformance suite', () => {
  it('kills every mutant with the cases named, over three seeds, and every case kills one', {
    timeout: 600_000,
  }, async () => {
    const { problems, mutants, casesWithoutMutant } = await runMutants();
    expect(problems).toEqual([]);
    expect(casesWithoutMutant).toEqual([]);
    expect(mutants.length).toBeGreaterThanOrEqual(250);
  });
});
