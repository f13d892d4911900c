import { describe, expect, it } from 'vitest';
import { problemsOfNames, runMutants } from '../src/mutants/run-mutants.ts';

describe('the conformance suite', () => {
  it('has a mutant for every case of safety and of liveness', () => {
    expect(problemsOfNames()).toEqual([]);
  });

  it('kills every mutant with the cases named', { timeout: 600_000 }, async () => {
    expect(await runMutants()).toEqual([]);
  });
});
