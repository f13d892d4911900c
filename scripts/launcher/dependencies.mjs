import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './root.mjs';
import { runChild } from './run-child.mjs';
import { say } from './say.mjs';
import { StepFailed } from './step-failed.mjs';

const stamp = join(root, 'node_modules/.locks-installed');

/**
 * Installs the packages of the lockfile unless the last install was of this very lockfile and these manifests.
 * @param {string} pnpmVersion
 * @param {NodeJS.ProcessEnv} env
 */
export async function installDependencies(pnpmVersion, env) {
  const wanted = fingerprint(pnpmVersion);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;

  say(`installing packages with pnpm ${pnpmVersion}`);
  const { exitCode, output } = await runChild(
    'pnpm',
    ['install', '--frozen-lockfile', '--reporter=append-only', '--config.confirm-modules-purge=false'],
    { env, output: 'quiet' },
  );
  if (exitCode !== 0) {
    const advice = output.includes('OUTDATED_LOCKFILE')
      ? 'A package.json was changed without the lockfile: run `pnpm install`, or `node scripts/run.mjs exec pnpm install`.'
      : 'Check the registry and proxy settings of npm, then try again.';
    throw new StepFailed(`${output}\npnpm install failed (exit code ${exitCode}). ${advice}`);
  }
  writeFileSync(stamp, wanted);
}

/** @param {string} pnpmVersion */
function fingerprint(pnpmVersion) {
  const hash = createHash('sha256');
  hash.update(`${pnpmVersion} ${process.platform} ${process.arch}`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...manifests()]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

// Every package.json one or two folders down: a superset of the workspace that needs no YAML parser.
function manifests() {
  const folders = readdirSync(root, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules',
  );
  const candidates = folders.flatMap(({ name }) => [
    name,
    ...readdirSync(join(root, name), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
      .map((entry) => `${name}/${entry.name}`),
  ]);
  return candidates
    .map((folder) => `${folder}/package.json`)
    .filter((file) => existsSync(join(root, file)))
    .sort();
}
