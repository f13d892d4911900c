import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { childEnvironment } from './environment.mjs';
import { leavingNothingBehind } from './left-behind.mjs';
import { bringPnpm, prepare } from './prepare.mjs';
import { root } from './root.mjs';
import { runChild } from './run-child.mjs';
import { say } from './say.mjs';
import { requireServers, serversOf, urlVariables } from './servers.mjs';
import { StepFailed } from './step-failed.mjs';

/**
 * A program that runs on the workspace's Node.
 * @typedef {object} Program
 * @property {string} file
 * @property {readonly string[]} [before] arguments before the user's
 * @property {(args: string[]) => readonly string[]} [builds] filters of turbo; none for everything
 * @property {(args: string[]) => readonly (string | undefined)[]} [backends] whose servers it needs
 * @property {NodeJS.ProcessEnv} [env] unless the user sets these
 */
/** @type {Record<string, Program>} */
const programs = {
  demo: {
    file: 'examples/src/demo/main.ts',
    builds: (args) => packagesOfDemo(optionValue(args, '--backend')),
    backends: (args) => [optionValue(args, '--backend')],
  },
  test: { file: 'scripts/checks/main.ts' },
  bench: {
    file: 'benchmarks/src/main.ts',
    builds: () => ['@locks/benchmarks^...'],
    backends: ([name]) => [name],
  },
  conformance: {
    file: 'contract-tests/src/main.ts',
    builds: () => ['@locks/contract-tests^...'],
    backends: ([name]) => [name],
  },
  locks: { file: 'packages/cli/dist/main.js', builds: () => ['@locks/cli'] },
  simulate: { file: 'simulation/src/main.ts', builds: () => ['@locks/simulation^...'] },
  lab: {
    file: 'contract-tests/src/lab/main.ts',
    builds: () => ['@locks/contract-tests^...'],
    backends: (args) => args.filter((arg) => !arg.startsWith('--')),
  },
  site: { file: 'site/src/main.ts', builds: () => ['./packages/*'] },
  rehearsal: {
    file: 'scripts/checks/main.ts',
    before: ['release:rehearsal', '--'],
    env: { LOCKS_ALLOW_MISSING: Object.keys(urlVariables).join(',') },
  },
  weight: { file: 'scripts/weight/main.ts' },
  pack: { file: 'scripts/pack/main.ts', builds: packagesToPack },
  update: { file: 'scripts/checks/update.ts' },
};

export const usage = `usage: node scripts/run.mjs <command> [args…]
  demo         the main job: processes sell one stock, without and with a lock (--backend, --workers, --sales, --json);
               --once: a nightly job on machines whose clocks differ; --leader: the leader resigns, and is killed
  test         what a change needs (--all: every check, --rest: those that this leaves out, --quick: the loop of a contributor, --changed: what differs from main; names of steps run only those, --list shows them)
  bench        the benchmarks: bench NAME [--json FILE]; without a name, the list
  conformance  the conformance suite on one backend: conformance <backend> [--seed N] [--only CASE]
  locks        the command \`locks\` of packages/cli: locks run NAME -- COMMAND…
  simulate     core in virtual time, with faults: simulate [--backend NAME] [--schedules N] [--seed S] [--replay SEED]; --help says more
  lab          workloads on real servers while these are broken: lab BACKEND… [--minutes M] [--seed S] [--nemesis a,b] [--json FILE]
  site         the website, from the documents and the packages' types, into site/dist: site [--base /PATH/] [--serve PORT]
  rehearsal    a whole release to a private registry on this machine: rehearsal [--before COMMIT] [--sbom FILE]
  weight       words of the documents, lines of the parts, functions of an acquire, seconds of the tests: weight [--pages] [--functions]
  pack         packages with those that they need as tarballs in packed/, for an application: pack [redis-ioredis …] [--to FOLDER]
  build        all packages
  lint         formatting and lint; --fix repairs what can be repaired
  update       writes generated files anew: embedded scripts, API reports, the compatibility matrix
  exec         any command with the workspace's tools on the PATH: exec vitest run packages/core`;

/** @type {Record<string, (args: string[]) => Promise<number | undefined>>} */
const others = {
  async build(args) {
    const { env } = await prepare();
    await build(args, env);
    return 0;
  },

  async lint(args) {
    if (!args.includes('--fix')) return run('test', ['format', 'lint']);
    const { env } = await prepare();
    const format = await runChild('biome', ['format', '--write', '.'], { env });
    const lint = await runChild('oxlint', ['--type-aware', '--fix'], { env });
    return format.exitCode || lint.exitCode;
  },

  async exec([command = 'node', ...args]) {
    // `pnpm install` repairs a lockfile that does not fit, so it must not require one that fits.
    await (command === 'pnpm' ? bringPnpm() : prepare());
    const { exitCode } = await runChild(command, args, { env: childEnvironment(), cwd: process.cwd() });
    return exitCode;
  },
};

/**
 * The exit code of a command; `undefined` where there is none of this name.
 * @param {string} name
 * @param {string[]} args
 * @returns {Promise<number | undefined>}
 */
export async function run(name, args) {
  if (Object.hasOwn(others, name)) return others[name]?.(args);
  const program = Object.hasOwn(programs, name) ? programs[name] : undefined;
  if (!program) return undefined;
  const filters = program.builds?.(args);
  if (name === 'test' && args.length === 0 && !existsSync(join(root, 'node_modules')))
    say('some 7 minutes on two cores, with the packages and servers that are installed first');
  const { node, env } = await prepare();
  const servers = new Set(program.backends?.(args).flatMap((backend) => serversOf(backend)));
  await requireServers([...servers], node, env);
  if (filters) await build(filters, env);
  return leavingNothingBehind({ ...program.env, ...env }, async (taskEnv) => {
    const given = [join(root, program.file), ...(program.before ?? []), ...args];
    const { exitCode } = await runChild(node, given, { env: taskEnv });
    return exitCode;
  });
}

/**
 * Turbo's filters for the packages of these names; none for all. An unknown name is refused before anything is installed.
 * @param {string[]} args
 */
function packagesToPack(args) {
  const folder = optionValue(args, '--to');
  const names = args.filter((name) => !name.startsWith('--to') && name !== folder);
  const known = readdirSync(join(root, 'packages'));
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new StepFailed(`there is no package ${unknown.join(', ')}; take some of ${known.join(', ')}`, 2);
  return names.length === 0 ? ['./packages/*'] : names.map((name) => `@locks/${name}`);
}

/**
 * Turbo's filters for what the demo imports: the other packages take most of the time of a first build.
 * @param {string | undefined} backend for example `postgres-lease`, of the package `postgres`
 */
function packagesOfDemo(backend = '') {
  const ofBackend = readdirSync(join(root, 'packages')).filter((name) =>
    `${backend}-`.startsWith(`${name}-`),
  );
  return ['sqlite', 'memory', 'once', 'leader', ...ofBackend].map((name) => `@locks/${name}`);
}

/**
 * The value of `--name value` or `--name=value`.
 * @param {readonly string[]} args
 * @param {string} name
 */
function optionValue(args, name) {
  const index = args.indexOf(name);
  if (index >= 0) return args[index + 1];
  return args.find((argument) => argument.startsWith(`${name}=`))?.slice(name.length + 1);
}
