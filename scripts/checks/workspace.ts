import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  readonly keywords?: readonly string[];
  readonly license?: string;
  readonly engines?: { readonly node?: string };
  readonly repository?: { readonly directory?: string };
  readonly homepage?: string;
  readonly bugs?: unknown;
  readonly private?: boolean;
  /** The file of every entry point that `import` gets; its types are beside it. */
  readonly exports?: Readonly<Record<string, string | { readonly default: string }>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

export interface WorkspacePackage {
  /** The folder, relative to the root: `packages/core`. */
  readonly path: string;
  readonly folder: string;
  /** `core` */
  readonly shortName: string;
  readonly manifest: Manifest;
}

/** Every package of the workspace, published ones first. */
export const workspacePackages: readonly WorkspacePackage[] = [
  ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}`),
  'test-servers',
  'contract-tests',
  'benchmarks',
  'simulation',
  'examples',
  'site',
]
  .filter((path) => existsSync(join(root, path, 'package.json')))
  .map(readPackage);

/** The packages that go to the registry. */
export const publishedPackages = workspacePackages.filter(({ manifest }) => !manifest.private);

/** What a package asks its user for, without the optional peers that an application need not have: vitest, and a client that compiles at its installation. */
export function requiredPeers({ manifest }: WorkspacePackage): [name: string, range: string][] {
  const { peerDependencies = {}, peerDependenciesMeta = {} } = manifest;
  return Object.entries(peerDependencies).filter(([name]) => !peerDependenciesMeta[name]?.optional);
}

export function hasTests({ folder }: WorkspacePackage): boolean {
  return globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: folder }).length > 0;
}

function readPackage(path: string): WorkspacePackage {
  const folder = join(root, path);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  return { path, folder, shortName: manifest.name.replace(/^@locks\//, ''), manifest };
}
