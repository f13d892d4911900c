import { describe, expect, it } from 'vitest';
import { mutants } from '../../src/mutants/index.ts';
import { problemsOfNames, runMutants } from '../../src/mutants/run-mutants.ts';
import { breaksSafety } from '../../src/mutants/safety.ts';

describe('the conformance suite', () => {
  it('kills every mutant of safety with the cases named', { timeout: 600_000 }, async () => {
    const ofSafety = mutants.filter(breaksSafety);
    expect(ofSafety.length).toBeGreaterThanOrEqual(60);
    const { problems } = await runMutants({ chosen: ofSafety });
    expect(problems).toEqual([]);
  });

  it('has a mutant for every case', () => {
    expect(problemsOfNames()).toEqual([]);
    expect(mutants.length).toBeGreaterThanOrEqual(230);
  });
});
