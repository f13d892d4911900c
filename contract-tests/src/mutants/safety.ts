import { conformanceCases } from '@locks/core/conformance';
import type { Mutant } from './mutant.ts';

/** Clauses of docs/spec.md whose breach lets two in, repeats a token, or hides that a lease is over. */
const OF_SAFETY = /^§(1\.[1-5]|3\.1|6\.[1-4]|8\.[1-3]|11\.1|15\.[158]|19\.[23])$/;

const casesOfSafety: ReadonlySet<string> = new Set(
  conformanceCases.filter(({ clause }) => OF_SAFETY.test(clause)).map(({ id }) => id),
);

/** Whether a case of such a clause must fail with the mutant. */
export function breaksSafety({ expected }: Pick<Mutant, 'expected'>): boolean {
  return expected.some((id) => casesOfSafety.has(id));
}
