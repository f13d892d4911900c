import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../checks/command.ts';
import { packedPackages } from '../../checks/packed.ts';
import { type Manifest, publishedPackages } from '../../checks/workspace.ts';
import { root } from '../../launcher/root.mjs';
import type { Registry } from './registry.ts';

const lists = join(root, 'etc/packed');

/** `changeset version` writes it: a tarball of the repository has none before the first release. */
const CHANGELOG = 'CHANGELOG.md';

/** The files of a tarball, one a line, in the order of their names. */
async function filesOf(tarball: string, more: readonly string[] = []): Promise<string> {
  const { ok, stdout, output } = await runCommand('tar', ['-tzf', tarball]);
  if (!ok) throw new Error(`${tarball}:\n${output}`);
  const packed = stdout.trim().split('\n');
  const files = new Set([...packed.map((file) => file.replace(/^package\//, '')), ...more]);
  return `${[...files].sort().join('\n')}\n`;
}

/** Compares every published tarball with `etc/packed/<package>.txt`, and what its package.json says to users. */
export async function problemsOfPublished(registry: Registry, version: string): Promise<string[]> {
  const problems: string[] = [];
  for (const { manifest, shortName } of publishedPackages) {
    const tarball = registry.tarball(manifest.name, version);
    const list = join(lists, `${shortName}.txt`);
    const expected = existsSync(list) ? readFileSync(list, 'utf8') : '';
    const is = await filesOf(tarball);
    if (is !== expected)
      problems.push(`${shortName}.txt: ${difference(expected, is)}; \`npm run update\` renews it`);
    const { stdout } = await runCommand('tar', ['-xOzf', tarball, 'package/package.json']);
    problems.push(...problemsOfManifest(JSON.parse(stdout) as PublishedManifest, version));
    problems.push(...(await problemsOfEntry(registry, manifest.name, version)));
  }
  const stale = readdirSync(lists).filter(
    (file) => !publishedPackages.some(({ shortName }) => file === `${shortName}.txt`),
  );
  return [...problems, ...stale.map((file) => `${file}: no such package any more`)];
}

/** Writes the lists from what is packed now, for `npm run update`: the tarball of a release has its CHANGELOG too. */
export async function writeLists(): Promise<void> {
  mkdirSync(lists, { recursive: true });
  for (const { shortName, tarball } of await packedPackages())
    writeFileSync(join(lists, `${shortName}.txt`), await filesOf(tarball, [CHANGELOG]));
}

interface PublishedManifest extends Manifest {
  readonly license?: string;
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
}

function problemsOfManifest(manifest: PublishedManifest, version: string): string[] {
  const { name, license, engines, repository, homepage, bugs, dependencies = {} } = manifest;
  const own = Object.entries({ ...dependencies, ...manifest.peerDependencies }).filter(([one]) =>
    one.startsWith('@locks/'),
  );
  const scripts = Object.keys(manifest.scripts ?? {}).filter((one) => /install$|^prepare$/.test(one));
  return [
    ...(manifest.version === version ? [] : [`${name}: its version is ${manifest.version}`]),
    ...(license === 'MIT' ? [] : [`${name}: its licence is ${license}`]),
    ...(engines?.node ? [] : [`${name}: no engines.node`]),
    // npm takes a package with provenance only where this is the repository that built it.
    ...(repository?.directory && homepage && bugs ? [] : [`${name}: repository, homepage or bugs is unset`]),
    ...scripts.map((one) => `${name}: has the script ${one}, which would run at its installation`),
    ...own
      .filter(([, range]) => range !== `^${version}`)
      .map(([one, range]) => `${name}: asks for ${one} ${range}, not ^${version}`),
  ];
}

/** What the registry answers to a package manager. */
async function problemsOfEntry({ url }: Registry, name: string, version: string): Promise<string[]> {
  const answer = await fetch(`${url}${name.replace('/', '%2f')}`);
  const { 'dist-tags': tags, versions } = (await answer.json()) as {
    'dist-tags'?: { latest?: string };
    versions?: Record<string, { dist?: { integrity?: string } }>;
  };
  return [
    ...(tags?.latest === version ? [] : [`${name}: latest is ${tags?.latest}`]),
    ...(versions?.[version]?.dist?.integrity?.startsWith('sha512-') ? [] : [`${name}: no sha512`]),
  ];
}

function difference(expected: string, is: string): string {
  const [listed, packed] = [expected, is].map((text) => new Set(text.split('\n').filter(Boolean))) as [
    Set<string>,
    Set<string>,
  ];
  const more = [...packed.difference(listed)].map((file) => `${file} is packed and not listed`);
  const less = [...listed.difference(packed)].map((file) => `${file} is listed and not packed`);
  return [...more, ...less].join(', ');
}
