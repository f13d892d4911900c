/** Tests the conformance suite: every mutant must fail its cases, the same over three seeds, and every case kill one. */
import { fileURLToPath } from 'node:url';
import { conformanceCases } from '@locks/core/conformance';
import { mutants } from './index.ts';
import type { Host, PlantedMutant as Mutant } from './mutant.ts';
import { Judge } from './judge.ts';
import type { CaseVerdict } from './mutant-process.ts';

export interface MutantResult {
  readonly name: string;
  readonly says: string;
  readonly host: Host;
  readonly expected: readonly string[];
  /** The cases that failed with every seed. */
  readonly killedBy: readonly string[];
  /** Those of them that the mutant does not expect: known only where all cases ran. */
  readonly unexpected: readonly string[];
}

interface MutantsOptions {
  /** All mutants by default. */
  readonly chosen?: readonly Mutant[];
  /**
   * Whether a mutant also runs the cases that it is not expected to fail, to learn which of them fail too. No verdict hangs on
   * that, and it takes many times as long.
   */
  readonly allCases?: boolean;
}

export interface MutantsReport {
  readonly mutants: readonly MutantResult[];
  /** The problems of the suite or the mutants; empty when all is well. */
  readonly problems: readonly string[];
}

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

/** A case that takes longer, or that starts processes, is run only on the mutants that it is expected to kill. */
const COSTLY_MS = 600;

/** The cases that a host passes, and the costly ones among them. */
interface Baseline {
  readonly passed: readonly string[];
  readonly costly: ReadonlySet<string>;
  readonly problems: readonly string[];
}

export async function runMutants({
  chosen = mutants,
  allCases = false,
}: MutantsOptions = {}): Promise<MutantsReport> {
  const baselines = new Map<Host, Baseline>();
  for (const host of new Set(chosen.map((mutant) => mutant.host))) {
    baselines.set(
      host,
      await baselineOf(
        host,
        chosen.filter((mutant) => mutant.host === host),
        allCases,
      ),
    );
  }
  const judge = (mutant: Mutant) => {
    const baseline = baselines.get(mutant.host) as Baseline;
    return judgeMutant(mutant, allCases ? casesFor(mutant, baseline) : mutant.expected);
  };
  const queue = [...chosen];
  const judgements = new Map<Mutant, Judgement>();
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      judgements.set(next, await judge(next));
    }
  };
  await Promise.all(Array.from({ length: MUTANTS_AT_ONCE }, work));
  // A case that lost time to concurrent cases may have missed the mutant: it runs again.
  for (const [mutant, { problems: seen }] of judgements) {
    if (seen.length > 0) judgements.set(mutant, await judge(mutant));
  }
  const judged = chosen.flatMap((mutant) => judgements.get(mutant) ?? []);
  const results = judged.map(({ result }) => result);
  const problems = [...baselines.values(), ...judged].flatMap((one) => one.problems);
  return { mutants: results, problems: problems.sort() };
}

interface Judgement {
  readonly result: MutantResult;
  readonly problems: readonly string[];
}

/** Runs the host without a mutation on the cases that judge its mutants: it must pass them. */
async function baselineOf(host: Host, hosted: readonly Mutant[], allCases: boolean): Promise<Baseline> {
  const expected = new Set(hosted.flatMap((mutant) => mutant.expected));
  const cases = conformanceCases
    .map(({ id }) => id)
    .filter((id) => (allCases && isGeneral(id, host)) || expected.has(id));
  const judge = new Judge(host);
  const options = {
    cases,
    seeds: SEEDS.slice(0, 1),
    limitMs: 3 * LIMIT_MS[host],
    atOnce: CASES_AT_ONCE.host,
  };
  const beside = await judge.run(options);
  const failed = beside.filter(({ outcome }) => outcome === 'failed').map(({ id }) => id);
  const alone = failed.length > 0 ? await judge.run({ ...options, cases: failed, atOnce: 1 }) : [];
  await judge.end();
  const verdicts = [...beside.filter(({ id }) => !failed.includes(id)), ...alone];
  return {
    passed: verdicts.filter(({ outcome }) => outcome === 'passed').map(({ id }) => id),
    costly: new Set(verdicts.filter(({ forked, ms }) => forked || ms > COSTLY_MS).map(({ id }) => id)),
    problems: verdicts
      .filter(({ outcome }) => outcome === 'failed' || outcome === 'untested')
      .map(({ id, outcome, reason }) => `${id} is ${outcome} on ${host} itself: ${reason}`),
  };
}

async function judgeMutant(mutant: Mutant, cases: readonly string[]): Promise<Judgement> {
  const { name, says, host, expected } = mutant;
  const judge = new Judge(name);
  const [first, ...others] = SEEDS;
  try {
    const options = {
      cases,
      seeds: [first as number],
      limitMs: LIMIT_MS[host],
      atOnce: CASES_AT_ONCE.mutant,
    };
    const failed = failures(await judge.run(options));
    // The other seeds run only the failed and the expected cases.
    const again = [...new Set([...expected, ...failed.keys()])];
    const killedBy = failures(await judge.run({ ...options, cases: again, seeds: others }));
    for (const [id, count] of failed) killedBy.set(id, (killedBy.get(id) ?? 0) + count);
    const kills = [...killedBy].filter(([, count]) => count === SEEDS.length).map(([id]) => id);
    const problems = expected
      .filter((id) => !kills.includes(id))
      .map(
        (id) =>
          `${name} survives ${id} with ${SEEDS.length - (killedBy.get(id) ?? 0)} of ${SEEDS.length} seeds`,
      );
    const unexpected = kills.filter((id) => !expected.includes(id));
    return {
      result: { name, says, host, expected, killedBy: kills.sort(), unexpected: unexpected.sort() },
      problems,
    };
  } finally {
    await judge.end();
  }
}

function failures(verdicts: readonly CaseVerdict[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { id, outcome } of verdicts) if (outcome === 'failed') counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** The groups of the other kinds of locks, which do not run on mutants of the exclusive lock. */
const OTHER_KINDS = ['shared', 'permits', 'all', 'steal', 'transfer'];

/** With all cases: on memory the cheap ones, on the other hosts those that memory cannot run; the expected ones always. */
function casesFor({ host, expected }: Mutant, { passed, costly }: Baseline): string[] {
  const ofOtherKinds = expected.some(isOfOtherKinds);
  const chosen = passed.filter(
    (id) => isGeneral(id, host) && !costly.has(id) && (ofOtherKinds || !isOfOtherKinds(id)),
  );
  return [...new Set([...chosen, ...expected])];
}

function isOfOtherKinds(id: string): boolean {
  return OTHER_KINDS.some((group) => id.startsWith(`${group}/`));
}

function isGeneral(id: string, host: Host): boolean {
  return host === 'memory' || (host === 'session-memory' && id.startsWith('session/'));
}

/** Every mutant has a name of its own, and every case at least one that it must kill. */
export function problemsOfNames(): string[] {
  const ids = conformanceCases.map(({ id }): string => id);
  const expected = mutants.flatMap((mutant) => mutant.expected);
  const names = mutants.map(({ name }) => name);
  return [
    ...expected.filter((id) => !ids.includes(id)).map((id) => `${id} is no case`),
    ...ids.filter((id) => !expected.includes(id)).map((id) => `${id} kills no mutant`),
    ...names.filter((name, at) => names.indexOf(name) !== at).map((name) => `there are two mutants ${name}`),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2).filter((argument) => argument !== '--all-cases');
  const chosen = mutants.filter(({ name }) => names.length === 0 || names.includes(name));
  const allCases = process.argv.includes('--all-cases');
  const startedAt = performance.now();
  const report = await runMutants({ chosen, allCases });
  for (const { name, expected, killedBy, unexpected } of report.mutants) {
    console.log(
      `${name}: ${killedBy.length} kills, ${expected.length} expected${unexpected.length > 0 ? `; also ${unexpected.join(', ')}` : ''}`,
    );
  }
  for (const problem of report.problems) console.error(`problem: ${problem}`);
  console.log(
    `${report.mutants.length} mutants in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`,
  );
  process.exitCode = report.problems.length > 0 ? 1 : 0;
}
