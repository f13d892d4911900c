import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { childEnvironment } from './environment.mjs';
import { leavingNothingBehind } from './left-behind.mjs';
import { bringPnpm } from './pnpm.mjs';
import { prepare } from './prepare.mjs';
import { root } from './root.mjs';
import { runChild } from './run-child.mjs';
import { say } from './say.mjs';
import { requireServers, serversOf, urlVariables } from './servers.mjs';
import { StepFailed } from './step-failed.mjs';

export const usage = `usage: node scripts/run.mjs <command> [args…]
  demo         the main job: processes sell one stock, without and with a lock (--backend, --workers, --sales, --json);
               --once: a nightly job on machines whose clocks differ; --leader: the leader resigns, and is killed
  test         what a change needs (--all: every check, --rest: those that this leaves out, --quick: the loop of a contributor; names of steps run only those, --list shows them)
  bench        the benchmarks: bench redis|postgres|mysql|zookeeper|etcd|kinds|telemetry|cluster|all [--json FILE]
  conformance  the conformance suite on one backend: conformance <backend> [--seed N] [--only CASE]
  locks        the command \`locks\` of packages/cli: locks run NAME -- COMMAND…
  simulate     core in virtual time, with faults: simulate [--backend rules|quorum|redis|mysql] [--schedules N] [--seed S] [--replay SEED [--html FILE]] [--mutants] [--json FILE]
  lab          workloads on real servers while these are broken: lab BACKEND… [--minutes M] [--seed S] [--nemesis a,b] [--json FILE]
  model        the model of the Redis protocol, searched exhaustively with Spin: model [--full] [--write]
  site         the website, from the documents and the packages' types, into site/dist: site [--base /PATH/] [--serve PORT]
  rehearsal    a whole release to a private registry on this machine: rehearsal [--before COMMIT] [--sbom FILE]
  weight       words of the documents, lines of the parts, functions of an acquire, seconds of the tests: weight [--pages] [--functions]
  pack         packages with those that they need as tarballs in packed/, for an application: pack [redis-ioredis …] [--to FOLDER]
  build        all packages
  lint         formatting and lint; --fix repairs what can be repaired
  update       writes generated files anew: embedded scripts, API reports, the compatibility matrix
  exec         any command with the workspace's tools on the PATH: exec vitest run packages/core`;

/** @type {Record<string, (args: string[]) => Promise<number>>} */
export const commands = {
  async demo(args) {
    const { node, env } = await prepare();
    await requireServers(serversOf(optionValue(args, '--backend')), node, env);
    await build(['@locks/examples^...'], env);
    return runTask(node, 'examples/src/demo/main.ts', args, env);
  },

  async test(args) {
    if (args.length === 0 && !existsSync(join(root, 'node_modules')))
      say('some 7 minutes on two cores, with the packages and servers that are installed first');
    const { node, env } = await prepare();
    return runTask(node, 'scripts/checks/main.ts', args, env);
  },

  async bench(args) {
    const { node, env } = await prepare();
    await requireServers(serversOf(args[0]), node, env);
    await build(['@locks/benchmarks^...'], env);
    return runTask(node, 'benchmarks/src/main.ts', args, env);
  },

  async conformance(args) {
    const { node, env } = await prepare();
    await requireServers(serversOf(args[0]), node, env);
    await build(['@locks/contract-tests^...'], env);
    return runTask(node, 'contract-tests/src/main.ts', args, env);
  },

  async locks(args) {
    const { node, env } = await prepare();
    await build(['@locks/cli'], env);
    return runTask(node, 'packages/cli/dist/main.js', args, env);
  },

  async simulate(args) {
    const { node, env } = await prepare();
    await build(['@locks/simulation^...'], env);
    return runTask(node, 'simulation/src/main.ts', args, env);
  },

  async lab(args) {
    const { node, env } = await prepare();
    const servers = new Set(args.filter((arg) => !arg.startsWith('--')).flatMap((name) => serversOf(name)));
    await requireServers([...servers], node, env);
    await build(['@locks/contract-tests^...'], env);
    return runTask(node, 'contract-tests/src/lab/main.ts', args, env);
  },

  async model(args) {
    const { node, env } = await prepare();
    return runTask(node, 'scripts/model/main.ts', args, env);
  },

  async site(args) {
    const { node, env } = await prepare();
    await build(['./packages/*'], env);
    return runTask(node, 'site/src/main.ts', args, env);
  },

  async rehearsal(args) {
    const { node, env } = await prepare();
    const all = Object.keys(urlVariables).join(',');
    const allowed = { LOCKS_ALLOW_MISSING: all, ...env };
    return runTask(node, 'scripts/checks/main.ts', ['release:rehearsal', '--', ...args], allowed);
  },

  async weight(args) {
    const { node, env } = await prepare();
    return runTask(node, 'scripts/weight/main.ts', args, env);
  },

  async pack(args) {
    const folder = optionValue(args, '--to');
    const names = args.filter((name) => !name.startsWith('--to') && name !== folder);
    const unknown = names.filter((name) => !existsSync(join(root, 'packages', name, 'package.json')));
    if (unknown.length > 0) {
      const known = readdirSync(join(root, 'packages')).join(', ');
      throw new StepFailed(`there is no package ${unknown.join(', ')}; take some of ${known}`, 2);
    }
    const { node, env } = await prepare();
    await build(names.length === 0 ? ['./packages/*'] : names.map((name) => `@locks/${name}`), env);
    return runTask(node, 'scripts/pack/main.ts', args, env);
  },

  async build(args) {
    const { env } = await prepare();
    await build(args, env);
    return 0;
  },

  async lint(args) {
    const { node, env } = await prepare();
    if (!args.includes('--fix')) return runTask(node, 'scripts/checks/main.ts', ['format', 'lint'], env);
    const format = await runChild('biome', ['format', '--write', '.'], { env });
    const lint = await runChild('oxlint', ['--type-aware', '--fix'], { env });
    return format.exitCode || lint.exitCode;
  },

  async update() {
    const { node, env } = await prepare();
    return runTask(node, 'scripts/checks/update.ts', [], env);
  },

  async exec([command = 'node', ...args]) {
    // `pnpm install` repairs a lockfile that does not fit, so it must not require one that fits.
    const env = command === 'pnpm' ? childEnvironment((await bringPnpm()).folders) : (await prepare()).env;
    const { exitCode } = await runChild(command, args, { env, cwd: process.cwd() });
    return exitCode;
  },
};

/**
 * @param {string} node
 * @param {string} file
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
function runTask(node, file, args, env) {
  return leavingNothingBehind(env, async (taskEnv) => {
    const { exitCode } = await runChild(node, [join(root, file), ...args], { env: taskEnv });
    return exitCode;
  });
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
