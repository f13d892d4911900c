/** Tests the conformance suite: with each of three seeds, every mutant must fail its cases, and no host without a mutation. */
import { fileURLToPath } from 'node:url';
import { conformanceCases } from '@locks/core/conformance';
import { mutants } from './index.ts';
import { judgedCases } from './judged-cases.ts';
import type { Host, PlantedMutant as Mutant } from './mutant.ts';
import { Judge } from './judge.ts';

const SEEDS: readonly number[] = [1, 20_261, 987_654_321];
const MUTANTS_AT_ONCE = 12;
/** Cases at once: a host without a mutation must pass in time, as in the suite; a mutant may fail other cases too. */
const CASES_AT_ONCE = { mutant: 14, host: 8 };
/** Longer than any case takes on a correct backend; a case that hangs with a mutant fails then. */
const LIMIT_MS: Readonly<Record<Host, number>> = {
  memory: 4_000,
  'cohort-memory': 4_000,
  'memory-tcp': 9_000,
  'session-memory': 4_000,
  sqlite: 9_000,
  'session-sqlite': 9_000,
};

/** The problems of the suite or the mutants; empty when all is well. */
export async function runMutants(chosen: readonly Mutant[] = mutants): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const host of new Set(chosen.map((mutant) => mutant.host))) {
    const hosted = chosen.filter((mutant) => mutant.host === host);
    problems.push(...(await problemsOfHost(host, [...new Set(hosted.flatMap(({ expected }) => expected))])));
  }
  const queue = [...chosen];
  const missed: Mutant[] = [];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      if ((await survivals(next)).length > 0) missed.push(next);
  };
  await Promise.all(Array.from({ length: MUTANTS_AT_ONCE }, work));
  // A case that lost time to concurrent cases may have missed the mutant: it runs again.
  for (const mutant of missed) problems.push(...(await survivals(mutant)));
  return problems.sort();
}

/** Runs the host without a mutation on the cases that judge its mutants: it must pass them. */
async function problemsOfHost(host: Host, cases: readonly string[]): Promise<string[]> {
  const judge = new Judge(host);
  const options = {
    seeds: SEEDS.slice(0, 1),
    limitMs: 3 * LIMIT_MS[host],
    atOnce: CASES_AT_ONCE.host,
  };
  const beside = await judge.run({ ...options, cases });
  const failed = beside.filter(({ outcome }) => outcome === 'failed').map(({ id }) => id);
  const alone = failed.length > 0 ? await judge.run({ ...options, cases: failed, atOnce: 1 }) : [];
  await judge.end();
  return [...beside.filter(({ id }) => !failed.includes(id)), ...alone]
    .filter(({ outcome }) => outcome === 'failed' || outcome === 'untested')
    .map(({ id, outcome, reason }) => `${id} is ${outcome} on ${host} itself: ${reason}`);
}

async function survivals({ name, host, expected }: Mutant): Promise<string[]> {
  const judge = new Judge(name);
  try {
    const options = { cases: expected, limitMs: LIMIT_MS[host], atOnce: CASES_AT_ONCE.mutant };
    const verdicts = [
      ...(await judge.run({ ...options, seeds: SEEDS.slice(0, 1) })),
      ...(await judge.run({ ...options, seeds: SEEDS.slice(1) })),
    ];
    const failures = verdicts.filter(({ outcome }) => outcome === 'failed');
    return expected.flatMap((id) => {
      const killed = failures.filter((failure) => failure.id === id).length;
      if (killed === SEEDS.length) return [];
      return `${name} survives ${id} with ${SEEDS.length - killed} of ${SEEDS.length} seeds`;
    });
  } finally {
    await judge.end();
  }
}

/** Every mutant has a name of its own and a judged case that it must fail, and every judged case at least one that it must kill. */
export function problemsOfNames(): string[] {
  const ids = conformanceCases.map(({ id }): string => id);
  const expected = mutants.flatMap((mutant) => mutant.expected);
  const names = mutants.map(({ name }) => name);
  return [
    ...expected.filter((id) => !ids.includes(id)).map((id) => `${id} is no case`),
    ...judgedCases.filter((id) => !expected.includes(id)).map((id) => `${id} kills no mutant`),
    ...mutants
      .filter((mutant) => !mutant.expected.some((id) => judgedCases.includes(id)))
      .map(({ name }) => `no case of safety or liveness judges ${name}`),
    ...names.filter((name, at) => names.indexOf(name) !== at).map((name) => `there are two mutants ${name}`),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  const chosen = mutants.filter(({ name }) => names.length === 0 || names.includes(name));
  const startedAt = performance.now();
  const problems = await runMutants(chosen);
  for (const problem of problems) console.error(`problem: ${problem}`);
  console.log(`${chosen.length} mutants in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
