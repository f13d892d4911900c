// Own code: turbo and pnpm are what it brings.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment, hostPath } from './environment.mjs';
import { root } from './root.mjs';
import { runChild } from './run-child.mjs';
import { say } from './say.mjs';
import { StepFailed } from './step-failed.mjs';

const execute = promisify(execFile);
const neededMajor = 24;
const stamp = join(root, 'node_modules/.locks-installed');

/**
 * Brings what every task needs: the packages of the lockfile, unless the last installation was of this very lockfile,
 * and with them the workspace's Node. Quick when all is there.
 * @returns {Promise<{ node: string, env: NodeJS.ProcessEnv }>}
 */
export async function prepare() {
  const wanted = fingerprint();
  await bringPnpm();
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    say('installing packages with pnpm');
    const options = ['--frozen-lockfile', '--reporter=append-only', '--config.confirm-modules-purge=false'];
    const env = childEnvironment();
    const { exitCode, output } = await runChild('pnpm', ['install', ...options], { env, output: 'quiet' });
    if (exitCode !== 0) {
      const advice = output.includes('OUTDATED_LOCKFILE')
        ? 'A package.json was changed without the lockfile: run `pnpm install`, or `node scripts/run.mjs exec pnpm install`.'
        : 'Check the registry and proxy settings of npm, then try again.';
      throw new StepFailed(`${output}\npnpm install failed (exit code ${exitCode}). ${advice}`);
    }
    writeFileSync(stamp, wanted);
  }
  return { node: await workspaceNode(), env: childEnvironment() };
}

/** Brings the pnpm that package.json names into `.tools/`, with npm. */
export async function bringPnpm() {
  const prefix = join(root, '.tools/pnpm');
  const { packageManager } = manifestOf(join(root, 'package.json'));
  const installed = join(prefix, 'node_modules/pnpm/package.json');
  if (existsSync(installed) && packageManager === `pnpm@${manifestOf(installed).version}`) return;
  say(`bringing ${packageManager} to .tools/`);
  // An unreachable registry is reported within seconds rather than after minutes of retries.
  const retries = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=3000'];
  const silent = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--no-update-notifier'];
  const args = ['install', '--prefix', prefix, ...silent, '--loglevel=error', ...retries, packageManager];
  // npm runs on the host's Node: the workspace's may not be there yet, and needs not fit the host's npm.
  const env = { ...childEnvironment(), PATH: hostPath() };
  const { exitCode, output } = await runChild('npm', args, { env, output: 'quiet' });
  if (exitCode !== 0)
    throw new StepFailed(
      `${output}\n${packageManager} could not be installed with npm (exit code ${exitCode}). ` +
        'Check the registry and proxy settings of npm.',
    );
}

/**
 * The Node that runs tests and tools: the one that came with the packages, else the host's if it is new enough.
 * @returns {Promise<string>} the executable
 */
async function workspaceNode() {
  const own = join(root, 'node_modules/.bin/node');
  const executable = existsSync(own) ? own : process.execPath;
  const { stdout } = await execute(executable, ['--version']);
  const major = Number(/^v(\d+)/.exec(stdout)?.[1]);
  if (major >= neededMajor) return executable;
  throw new StepFailed(
    `The workspace needs Node ${neededMajor} or newer; the host's is ${stdout.trim()}, and the registry packages bring ` +
      `none for ${process.platform}-${process.arch}. Install Node ${neededMajor} (https://nodejs.org), put it first on ` +
      `the PATH and run the command again.`,
  );
}

function fingerprint() {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json'])
    hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

/** @param {string} file */
function manifestOf(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
