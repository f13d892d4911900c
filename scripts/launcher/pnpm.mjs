import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment, hostPath } from './environment.mjs';
import { root } from './root.mjs';
import { runChild } from './run-child.mjs';
import { say } from './say.mjs';
import { StepFailed } from './step-failed.mjs';

const execute = promisify(execFile);

// An unreachable registry is reported within seconds rather than after minutes of retries.
const npmOptions = [
  '--no-save',
  '--no-package-lock',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=error',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=3000',
];

/**
 * Brings the pnpm that package.json names, into `.tools/`, unless the host has it.
 * @returns {Promise<{ version: string, folders: string[] }>} the folders to put on the PATH; none for the host's pnpm
 */
export async function bringPnpm() {
  const version = wantedVersion();
  if ((await versionOf('pnpm')) === version) return { version, folders: [] };

  const prefix = join(root, '.tools/pnpm');
  const executable = join(prefix, 'node_modules/.bin/pnpm');
  const found = { version, folders: [dirname(executable)] };
  if (existsSync(executable) && (await versionOf(executable)) === version) return found;

  say(`bringing pnpm ${version} to .tools/`);
  const { exitCode, output } = await runChild(
    'npm',
    ['install', '--prefix', prefix, ...npmOptions, `pnpm@${version}`],
    {
      env: npmEnvironment(),
      output: 'quiet',
    },
  );
  if (exitCode !== 0 || (await versionOf(executable)) !== version) {
    throw new StepFailed(
      `${output}\npnpm ${version} could not be installed with npm (exit code ${exitCode}). ` +
        `Check the registry and proxy settings of npm, or install it yourself: npm install -g pnpm@${version}`,
    );
  }
  return found;
}

function wantedVersion() {
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const version = /^pnpm@([^+]+)/.exec(packageManager)?.[1];
  if (!version)
    throw new StepFailed(`package.json: packageManager is "${packageManager}", not pnpm@<version>`);
  return version;
}

// Asked outside of the repository: inside, a pnpm may answer for the version that it would switch to.
/** @param {string} executable */
async function versionOf(executable) {
  try {
    const env = { ...childEnvironment([]), PATH: hostPath(), COREPACK_ENABLE_NETWORK: '0' };
    const { stdout } = await execute(executable, ['--version'], { cwd: tmpdir(), env });
    return stdout.trim();
  } catch {
    return undefined;
  }
}

// npm runs on the host's Node: the workspace's may not be there yet, and needs not fit the host's npm.
function npmEnvironment() {
  return { ...childEnvironment([]), PATH: hostPath() };
}
