import { type CommandOptions, runCommand } from './command.ts';
import { withServers } from './step-servers.ts';
import { resultOf, type Step, type StepResult } from './step.ts';

interface CheckOptions extends CommandOptions {
  /** What the command must print: this object as JSON, or what the pattern says. */
  readonly expected?: object | RegExp;
}

/** The name of a check, and the command that fails with what is wrong. */
export type CheckCommand = readonly [name: string, command: string, args: readonly string[], CheckOptions?];

interface CommandStep extends Omit<Step, 'run'> {
  /** Lines of the output that are told. */
  readonly shows?: RegExp;
  /** How many commands run at once. */
  readonly lanes?: number;
  /** What failed beside others is repeated alone: docs/adr/0009-failures-repeated-alone.md. */
  readonly repeats?: boolean;
}

/** A step of commands, each of which is a check. They find the servers of the step in their environment. */
export function commandStep(
  { shows, lanes = 1, repeats = false, ...step }: CommandStep,
  commands: (env: NodeJS.ProcessEnv) => readonly CheckCommand[] | Promise<readonly CheckCommand[]>,
): Step {
  const runAll = async (
    missing: ReadonlySet<string>,
    selected: (name: string) => boolean,
    atOnce: number,
  ): Promise<StepResult> => {
    const servers = [...(step.needs ?? []), ...(step.uses ?? [])].filter((server) => !missing.has(server));
    const checks: Awaited<ReturnType<typeof checkOf>>[] = [];
    await withServers(servers, async (env) => {
      const queue = (await commands(env)).filter(([name]) => selected(name));
      const work = async () => {
        for (let next = queue.shift(); next; next = queue.shift()) checks.push(await checkOf(next, env));
      };
      await Promise.all(Array.from({ length: atOnce }, work));
    });
    const lines = shows ? checks.flatMap(({ output }) => output.split('\n')) : [];
    const result = resultOf(
      checks,
      lines.filter((line) => shows?.test(line)),
    );
    const failed = checks.filter(({ problem }) => problem !== undefined).map(({ name }) => name);
    if (!repeats || failed.length === 0 || result.output.includes('SafetyViolation')) return result;
    const again = async () => {
      const repeated = await runAll(missing, (name) => failed.includes(name), 1);
      const all = { ...repeated, passed: result.passed + repeated.passed };
      return repeated.failed > 0 ? all : { ...all, onlyAlone: failed };
    };
    return { ...result, again };
  };
  return { ...step, run: ({ missing }) => runAll(missing, () => true, lanes) };
}

/** Runs one command. */
export async function checkOf(
  [name, command, args, { expected, env, ...options } = {}]: CheckCommand,
  ofServers: NodeJS.ProcessEnv = {},
): Promise<{ name: string; output: string; problem: string | undefined }> {
  const all = { ...process.env, ...ofServers, ...env };
  const { ok, output, stdout } = await runCommand(command, args, { ...options, env: all });
  const said = stdout.trim();
  const isExpected =
    expected === undefined ||
    (expected instanceof RegExp ? expected.test(said) : said === JSON.stringify(expected));
  const problem = ok && isExpected ? undefined : output.trim() || 'failed without output';
  return { name, output, problem };
}
