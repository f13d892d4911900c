import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../checks/command.ts';
import { type Manifest, publishedPackages } from '../../checks/workspace.ts';
import { root } from '../../launcher/root.mjs';
import { tarballsOf } from '../stage.mjs';
import type { Registry } from './registry.ts';

/** A copy of the sources, in which a release is made: the working tree stays as it is. */
export interface ReleaseCopy {
  readonly folder: string;
  /** Whether `dist/` came from the working tree. */
  readonly isBuilt: boolean;
}

const NOT_COPIED = new Set([
  'node_modules',
  '.git',
  '.turbo',
  '.tools',
  '.release',
  'coverage',
  'conformance-report',
]);

/** The sources as they are now; with `withBuild` also `dist/`, so that nothing need be built again. */
export async function copyOfSources(folder: string, withBuild: boolean): Promise<ReleaseCopy> {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(root).filter((one) => isCopied(one, withBuild)))
    cpSync(join(root, name), join(folder, name), {
      recursive: true,
      filter: (path) => isCopied(path.slice(path.lastIndexOf('/') + 1), withBuild),
    });
  return prepared(folder, withBuild);
}

/** The sources of a commit or tag. */
export async function copyOfCommit(folder: string, commit: string): Promise<ReleaseCopy> {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, 'sources.tar');
  await must('git', ['archive', `--output=${archive}`, commit], root);
  await must('tar', ['-xf', archive], folder);
  return prepared(folder, false);
}

function isCopied(name: string, withBuild: boolean): boolean {
  return !NOT_COPIED.has(name) && !name.endsWith('.tsbuildinfo') && (withBuild || name !== 'dist');
}

/** Links that no release goes without stand in the root's package.json; where they are unset, here are some that lead nowhere. */
async function prepared(folder: string, isBuilt: boolean): Promise<ReleaseCopy> {
  const file = join(folder, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const links = {
    repository: 'git+https://example.org/locks.git',
    homepage: 'https://example.org/locks',
    bugs: 'https://example.org/locks/issues',
  };
  writeFileSync(file, JSON.stringify({ ...links, ...manifest }, undefined, 2));
  await must('git', ['init', '--quiet', '--initial-branch=main'], folder);
  await commit(folder);
  await must('pnpm', ['install', '--frozen-lockfile', '--prefer-offline', '--reporter=silent'], folder);
  return { folder, isBuilt };
}

async function commit(folder: string): Promise<void> {
  await must('git', ['add', '--all'], folder);
  const by = [
    '-c',
    'user.name=rehearsal',
    '-c',
    'user.email=rehearsal@localhost',
    '-c',
    'commit.gpgsign=false',
  ];
  await must('git', [...by, 'commit', '--quiet', '--no-verify', '--allow-empty', '-m', 'rehearsal'], folder);
}

/** Raises the versions as the pending changesets say; where none is pending, by a patch of all packages. */
export async function raiseVersions(copy: ReleaseCopy): Promise<{ version: string; pending: number }> {
  const changesets = join(copy.folder, '.changeset');
  const pending = readdirSync(changesets).filter((name) => name.endsWith('.md')).length;
  if (pending === 0) {
    const lines = publishedPackages.map(({ manifest }) => `'${manifest.name}': patch`);
    writeFileSync(join(changesets, 'rehearsal.md'), `---\n${lines.join('\n')}\n---\n\nRehearsed.\n`);
  }
  await must(join(copy.folder, 'node_modules/.bin/changeset'), ['version'], copy.folder);
  await commit(copy.folder);
  const version = versionOf(copy);
  const problems = publishedPackages.flatMap(({ manifest: { name }, path }) => {
    const is = (JSON.parse(readFileSync(join(copy.folder, path, 'package.json'), 'utf8')) as Manifest)
      .version;
    const log = join(copy.folder, path, 'CHANGELOG.md');
    const isLogged = existsSync(log) && readFileSync(log, 'utf8').includes(`\n## ${version}\n`);
    return [
      ...(is === version ? [] : [`${name} would be ${is}, not ${version}`]),
      ...(isLogged ? [] : [`the CHANGELOG of ${name} has no section ${version}`]),
    ];
  });
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return { version, pending };
}

export function versionOf({ folder }: ReleaseCopy): string {
  return (JSON.parse(readFileSync(join(folder, 'packages/core/package.json'), 'utf8')) as Manifest).version;
}

/** Builds the packages, unless their `dist/` was copied. */
export async function buildCopy({ folder, isBuilt }: ReleaseCopy): Promise<void> {
  if (!isBuilt) await must(process.execPath, ['scripts/run.mjs', 'build'], folder);
}

/** Publishes all packages of the copy: by `npm run release`, or by its parts but for the build where `dist/` was copied. */
export async function publishTo(registry: Registry, copy: ReleaseCopy): Promise<void> {
  const env = {
    ...process.env,
    npm_config_userconfig: registry.publisherSettings,
    NPM_CONFIG_USERCONFIG: registry.publisherSettings,
    npm_config_registry: registry.url,
    // Provenance is signed with an identity that only a workflow of the repository has.
    NPM_CONFIG_PROVENANCE: 'false',
    npm_config_provenance: 'false',
  };
  // The settings of the folder win over those of the user and of the environment.
  cpSync(registry.publisherSettings, join(copy.folder, '.npmrc'));
  const run = (command: string, args: readonly string[]) => must(command, args, copy.folder, env);
  if (copy.isBuilt) {
    await run(process.execPath, ['scripts/release/write-links.mjs']);
    const changeset = join(copy.folder, 'node_modules/.bin/changeset');
    rmSync(join(copy.folder, '.release'), { recursive: true, force: true });
    await run(changeset, ['pack', '--out-dir', '.release']);
    await run(changeset, ['publish', '--from-pack-dir', '.release']);
  } else {
    rmSync(join(copy.folder, '.release'), { recursive: true, force: true });
    await run('npm', ['run', 'release']);
  }
}

/** The tarballs are what `scripts/release/stage.mjs` would stage at npm. */
export function checkPacked({ folder }: ReleaseCopy): void {
  const packed = tarballsOf(join(folder, '.release'));
  if (packed.length !== publishedPackages.length)
    throw new Error(`${packed.length} of ${publishedPackages.length} packages were packed`);
}

/** The standard output of a command that must succeed. */
export async function must(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const { ok, output, stdout } = await runCommand(command, args, { cwd, env });
  if (!ok) throw new Error(`${[command, ...args].join(' ')}:\n${output}`);
  return stdout;
}
