import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../checks/command.ts';
import { type Manifest, publishedPackages } from '../../checks/workspace.ts';
import { tarballsOf } from '../stage.mjs';
import type { Registry } from './registry.ts';

/** A copy of the sources, in which a release is made: the working tree stays as it is. */
export interface ReleaseCopy {
  readonly folder: string;
  /** Whether `dist/` came from the working tree. */
  readonly isBuilt: boolean;
}

const NOT_COPIED = [
  'node_modules',
  '.git',
  '.turbo',
  '.tools',
  '.release',
  'coverage',
  'conformance-report',
  '*.tsbuildinfo',
];

/** Of the rehearsal, in which links that no release goes without may still be unset. */
const LINKS = {
  repository: 'git+https://example.org/locks.git',
  homepage: 'https://example.org/locks',
  bugs: 'https://example.org/locks/issues',
};

/** The sources as they are now; with `isBuilt` also `dist/`, so that nothing need be built again. */
export function copyOfSources(folder: string, isBuilt: boolean): Promise<ReleaseCopy> {
  const excluded = [...NOT_COPIED, ...(isBuilt ? [] : ['dist'])].map((name) => `--exclude=${name}`);
  return copyFrom(['tar', '-c', ...excluded, '.'], folder, isBuilt);
}

/** The sources of a commit or tag. */
export function copyOfCommit(folder: string, commit: string): Promise<ReleaseCopy> {
  return copyFrom(['git', 'archive', commit], folder, false);
}

async function copyFrom(archive: readonly string[], folder: string, isBuilt: boolean): Promise<ReleaseCopy> {
  mkdirSync(folder, { recursive: true });
  await must('sh', ['-c', '"$@" | tar -x -C "$0"', folder, ...archive]);
  const file = join(folder, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  writeFileSync(file, JSON.stringify({ ...LINKS, ...manifest }, undefined, 2));
  await must('git', ['init', '--quiet', '--initial-branch=main'], { cwd: folder });
  await commit(folder);
  const install = ['install', '--frozen-lockfile', '--prefer-offline', '--reporter=silent'];
  await must('pnpm', install, { cwd: folder });
  return { folder, isBuilt };
}

async function commit(folder: string): Promise<void> {
  await must('git', ['add', '--all'], { cwd: folder });
  const settings = {
    'user.name': 'rehearsal',
    'user.email': 'rehearsal@localhost',
    'commit.gpgsign': 'false',
  };
  const by = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const options = ['--quiet', '--no-verify', '--allow-empty', '-m', 'rehearsal'];
  await must('git', [...by, 'commit', ...options], { cwd: folder });
}

/** Raises the versions as the pending changesets say; where none is pending, by a patch of all packages. */
export async function raiseVersions({ folder }: ReleaseCopy): Promise<void> {
  const changesets = join(folder, '.changeset');
  if (!readdirSync(changesets).some((name) => name.endsWith('.md'))) {
    const lines = publishedPackages.map(({ manifest }) => `'${manifest.name}': patch`);
    writeFileSync(join(changesets, 'rehearsal.md'), `---\n${lines.join('\n')}\n---\n\nRehearsed.\n`);
  }
  await must(join(folder, 'node_modules/.bin/changeset'), ['version'], { cwd: folder });
  await commit(folder);
  const version = versionOf({ folder });
  const wrong = publishedPackages.filter(({ path }) => {
    const log = readFileSync(join(folder, path, 'CHANGELOG.md'), 'utf8');
    return versionOf({ folder }, path) !== version || !log.includes(`\n## ${version}\n`);
  });
  if (wrong.length > 0)
    throw new Error(`not ${version}, or no section of it: ${wrong.map(({ path }) => path).join(', ')}`);
}

export function versionOf({ folder }: Pick<ReleaseCopy, 'folder'>, path = 'packages/core'): string {
  return (JSON.parse(readFileSync(join(folder, path, 'package.json'), 'utf8')) as Manifest).version;
}

/** Publishes all packages of the copy: by `npm run release`, or by its parts but for the build where `dist/` was copied. */
export async function publishTo(
  { publisherSettings: settings, url }: Registry,
  { folder, isBuilt }: ReleaseCopy,
): Promise<void> {
  const own = {
    userconfig: settings,
    registry: url,
    // Provenance is signed with an identity that only a workflow of the repository has.
    provenance: 'false',
  };
  const names = Object.entries(own).flatMap(([name, value]) => [
    [`npm_config_${name}`, value],
    [`NPM_CONFIG_${name.toUpperCase()}`, value],
  ]);
  const options = { cwd: folder, env: { ...process.env, ...Object.fromEntries(names) } };
  // The settings of the folder win over those of the user and of the environment.
  cpSync(settings, join(folder, '.npmrc'));
  rmSync(join(folder, '.release'), { recursive: true, force: true });
  if (isBuilt) {
    const changeset = join(folder, 'node_modules/.bin/changeset');
    await must(process.execPath, ['scripts/release/write-links.mjs'], options);
    await must(changeset, ['pack', '--out-dir', '.release'], options);
    await must(changeset, ['publish', '--from-pack-dir', '.release'], options);
  } else {
    // Before, and with other settings, since it installs what it needs from the public registry.
    await must(process.execPath, ['scripts/run.mjs', 'build'], { cwd: folder });
    await must('npm', ['run', 'release'], options);
  }
}

/** The tarballs are what `scripts/release/stage.mjs` would stage at npm. */
export function checkPacked({ folder }: ReleaseCopy): void {
  const packed = tarballsOf(join(folder, '.release')).length;
  if (packed !== publishedPackages.length)
    throw new Error(`${packed} of ${publishedPackages.length} packages were packed`);
}
