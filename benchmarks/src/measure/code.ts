import { createHash } from 'node:crypto';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const packagesFolder = fileURLToPath(new URL('../../../packages/', import.meta.url));

/** The name and a hash of each package of this repository whose code was measured. */
export type Code = Readonly<Record<string, string>>;

/** The code of those of `packages` that are of this repository, and of the packages that they depend on. */
export function codeOf(packages: Iterable<string>): Code {
  const found = new Set<string>();
  const add = (name: string): void => {
    if (!name.startsWith('@locks/') || found.has(name)) return;
    found.add(name);
    const { dependencies, peerDependencies } = JSON.parse(
      readFileSync(join(folderOf(name), 'package.json'), 'utf8'),
    ) as Readonly<Record<'dependencies' | 'peerDependencies', Readonly<Record<string, string>> | undefined>>;
    for (const other of Object.keys({ ...dependencies, ...peerDependencies })) add(other);
  };
  for (const name of packages) add(name);
  return Object.fromEntries([...found].sort().map((name) => [name, hashOf(name)]));
}

/** The packages whose code is not that of `code` any more. */
export function changedSince(code: Code): string[] {
  return Object.entries(code)
    .filter(([name, hash]) => hashOf(name) !== hash)
    .map(([name]) => name);
}

/** All packages of this repository. */
export function ownPackages(): string[] {
  return readdirSync(packagesFolder).map((folder) => `@locks/${folder}`);
}

const hashes = new Map<string, string>();

function hashOf(name: string): string {
  const known = hashes.get(name);
  if (known !== undefined) return known;
  const source = join(folderOf(name), 'src');
  const hash = createHash('sha256');
  for (const file of globSync('**/*.ts', { cwd: source }).sort())
    hash.update(`${file}\n${withoutComments(readFileSync(join(source, file), 'utf8'))}`);
  const short = hash.digest('hex').slice(0, 12);
  hashes.set(name, short);
  return short;
}

/** A better comment makes no figure stale. */
function withoutComments(source: string): string {
  return source
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => !/^(?:\/\/|\/\*|\*|$)/.test(line))
    .join('\n');
}

function folderOf(name: string): string {
  return join(packagesFolder, name.slice('@locks/'.length));
}
