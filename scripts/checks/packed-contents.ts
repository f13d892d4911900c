import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { root } from '../launcher/root.mjs';
import { must } from './command.ts';
import { packedPackages } from './packed.ts';
import { type Manifest, publishedPackages, type WorkspacePackage } from './workspace.ts';

/** The limit is that of core, with the suite and both formats; the other packages are far below. */
const MOST_BYTES = 459_500;
const LISTS = join(root, 'etc/packed');
/** `changeset version` writes it: a tarball of the repository has none before the first release. */
const CHANGELOG = 'CHANGELOG.md';

/**
 * Problems of a tarball as its user sees it; `undefined` if there is none. What only a release has, the CHANGELOG and links to the
 * repository, must be in one with `isReleased`.
 */
export async function problemOfContents(
  tarball: string,
  { shortName }: WorkspacePackage,
  isReleased: boolean,
): Promise<string | undefined> {
  const files = await filesOf(tarball, isReleased ? [] : [CHANGELOG]);
  const list = join(LISTS, `${shortName}.txt`);
  const listed = new Set(existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n') : []);
  const bytes = statSync(tarball).size;
  const readme = await must('tar', ['-xOzf', tarball, 'package/README.md']);
  const manifest = JSON.parse(await must('tar', ['-xOzf', tarball, 'package/package.json'])) as Manifest;
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, to = '']) => posix.normalize(to));
  const problems = [
    ...[...files.difference(listed)].map((file) => `${file} is packed and not listed: npm run update`),
    ...[...listed.difference(files)].map((file) => `${file} is listed and not packed: npm run update`),
    ...links.filter((link) => !files.has(link)).map((link) => `README.md links to ${link}, which is absent`),
    ...(bytes > MOST_BYTES ? [`${bytes} bytes, more than ${MOST_BYTES}`] : []),
    ...problemsOfManifest(manifest, isReleased),
  ];
  return problems.length > 0 ? problems.join('\n') : undefined;
}

function problemsOfManifest(manifest: Manifest, isReleased: boolean): string[] {
  const { version, license, engines, description, keywords, repository, homepage, bugs } = manifest;
  const ranges = Object.entries({ ...manifest.dependencies, ...manifest.peerDependencies });
  const scripts = Object.keys(manifest.scripts ?? {}).filter((one) => /install$|^prepare$/.test(one));
  return [
    ...(license === 'MIT' ? [] : [`its licence is ${license}`]),
    ...(engines?.node ? [] : ['no engines.node']),
    ...(description && keywords?.length ? [] : ['no description, or no keywords']),
    // npm takes a package with provenance only where this is the repository that built it.
    ...(!isReleased || (repository?.directory && homepage && bugs)
      ? []
      : ['repository, homepage or bugs is unset']),
    ...scripts.map((one) => `has the script ${one}, which would run at its installation`),
    ...ranges
      .filter(([name, range]) => name.startsWith('@locks/') && range !== `^${version}`)
      .map(([name, range]) => `asks for ${name} ${range}, not ^${version}`),
  ];
}

/** Lists of packages that are no more. */
export function staleLists(): { name: string; problem: string }[] {
  const known = publishedPackages.map(({ shortName }) => `${shortName}.txt`);
  const stale = readdirSync(LISTS).filter((file) => !known.includes(file));
  return stale.map((name) => ({ name, problem: 'no such package any more: remove it' }));
}

/** Writes the lists from what is packed now, for `npm run update`. */
export async function writeLists(): Promise<void> {
  mkdirSync(LISTS, { recursive: true });
  for (const { shortName, tarball } of await packedPackages()) {
    const files = await filesOf(tarball, [CHANGELOG]);
    writeFileSync(join(LISTS, `${shortName}.txt`), `${[...files].sort().join('\n')}\n`);
  }
}

/** The files of a tarball, and `more`. */
async function filesOf(tarball: string, more: readonly string[]): Promise<Set<string>> {
  const packed = (await must('tar', ['-tzf', tarball])).trim().split('\n');
  return new Set([...packed.map((file) => file.replace(/^package\//, '')), ...more]);
}
