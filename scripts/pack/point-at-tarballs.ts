import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must } from '../checks/command.ts';
import type { PackedPackage } from '../checks/packed.ts';

/**
 * Makes packages that need each other name the tarballs: npm takes a tarball of the same command for a dependency, but pnpm and Yarn ask
 * the registry, which has none of them yet.
 */
export async function pointAtTarballs(packed: readonly PackedPackage[]): Promise<void> {
  const tarballOf = new Map(packed.map(({ manifest, tarball }) => [manifest.name, tarball]));
  for (const { tarball } of packed) {
    const folder = mkdtempSync(join(tmpdir(), 'tarball-'));
    await must('tar', ['-xzf', tarball, '-C', folder]);
    const file = join(folder, 'package', 'package.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: Record<string, string> };
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const needed = tarballOf.get(name);
      if (needed !== undefined) Object.assign(manifest.dependencies ?? {}, { [name]: `file:${needed}` });
    }
    writeFileSync(file, `${JSON.stringify(manifest, undefined, 2)}\n`);
    await must('tar', ['-czf', tarball, '-C', folder, 'package']);
    rmSync(folder, { recursive: true });
  }
}
