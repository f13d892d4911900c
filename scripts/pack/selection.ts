import type { PackedPackage } from '../checks/packed.ts';
import type { WorkspacePackage } from '../checks/workspace.ts';
import { publishedPackages } from '../checks/workspace.ts';

/** The packages of these names with the packages of the workspace that they need, each once, in the order of their names. */
export function withDependencies(names: readonly string[]): readonly WorkspacePackage[] {
  const needed = new Set<WorkspacePackage>();
  const add = (one: WorkspacePackage): void => {
    if (needed.has(one)) return;
    needed.add(one);
    for (const name of Object.keys(one.manifest.dependencies ?? {})) {
      const inner = publishedPackages.find(({ manifest }) => manifest.name === name);
      if (inner !== undefined) add(inner);
    }
  };
  for (const one of publishedPackages) if (names.includes(one.shortName)) add(one);
  return publishedPackages.filter((one) => needed.has(one));
}

/** The command that installs the tarballs and the client libraries which they ask for. */
export function installLine(packed: readonly PackedPackage[]): string {
  const clients = packed.flatMap(({ manifest }) =>
    Object.keys(manifest.peerDependencies ?? {}).filter(
      (name) => manifest.peerDependenciesMeta?.[name]?.optional !== true,
    ),
  );
  const tarballs = packed.map(({ tarball }) => (/[^\w./:\\-]/.test(tarball) ? `"${tarball}"` : tarball));
  return ['npm i', ...tarballs, ...new Set(clients)].join(' ');
}
