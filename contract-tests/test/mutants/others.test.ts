import { expect, it } from 'vitest';
import { mutants } from '../../src/mutants/index.ts';
import { runMutants } from '../../src/mutants/run-mutants.ts';
import { breaksSafety } from '../../src/mutants/safety.ts';

it('the conformance suite kills every other mutant with the cases named', { timeout: 600_000 }, async () => {
  const { problems } = await runMutants({ chosen: mutants.filter((mutant) => !breaksSafety(mutant)) });
  expect(problems).toEqual([]);
});
