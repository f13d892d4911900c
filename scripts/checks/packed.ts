import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must } from './command.ts';
import type { WorkspacePackage } from './workspace.ts';
import { publishedPackages } from './workspace.ts';

export interface PackedPackage extends WorkspacePackage {
  readonly tarball: string;
}

let packed: Promise<readonly PackedPackage[]> | undefined;

/** The published packages as the registry would get them: `workspace:` ranges resolved. Made once in a run. */
export function packedPackages(): Promise<readonly PackedPackage[]> {
  packed ??= packInto(mkdtempSync(join(tmpdir(), 'packed-')), publishedPackages);
  return packed;
}

/** Packs these packages into a folder that exists: `core.tgz` has `@locks/core`. */
export async function packInto(
  folder: string,
  packages: readonly WorkspacePackage[],
): Promise<readonly PackedPackage[]> {
  const result: PackedPackage[] = [];
  for (const one of packages) {
    const tarball = join(folder, `${one.shortName}.tgz`);
    await must('pnpm', ['pack', '--out', tarball], { cwd: one.folder });
    result.push({ ...one, tarball });
  }
  return result;
}
