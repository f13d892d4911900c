import { conformanceCases } from '@locks/core/conformance';

/** Clauses of docs/spec.md whose breach lets two in, takes a lock from its holder, repeats a token, or hides that a lease is over. */
const SAFETY =
  /^§(1\.[1-7]|2\.[1-48]|3\.[12]|4\.8|5\.[37]|6\.[1-4]|8\.[1-3]|11\.1|12\.1|13\.[15]|15\.[14578]|17\.[12]|18\.[4-6]|19\.[123]|20\.3)$/;
/** Clauses whose breach makes somebody wait for longer than need be, or out of turn. */
const LIVENESS = /^§(1\.9|2\.[56]|5\.9|5\.10|7\.[1-479]|15\.[26]|20\.[268])$/;

/** The cases that mutants prove: StrykerJS and the unit tests judge the rest. */
export const judgedCases: readonly string[] = conformanceCases
  .filter(({ clause }) => SAFETY.test(clause) || LIVENESS.test(clause))
  .map(({ id }) => id);
