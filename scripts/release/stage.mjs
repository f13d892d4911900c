// In the release workflow: stages what `npm run release:pack` has packed at npm. Nothing is public until a maintainer approves
// each package with two-factor authentication: docs/releasing.md. `--dry-run` only says what it would stage.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {{ name: string, version: string, kind?: string, tarball?: { path: string, integrity: string } }} Release
 * @typedef {{ name: string, file: string }} Tarball
 */

/**
 * The tarballs of a folder of `changeset pack`, dependencies first. Throws when one is not the one that was packed.
 * @param {string} folder
 * @returns {Tarball[]}
 */
export function tarballsOf(folder) {
  const { plan } = /** @type {{ plan: Release[][] }} */ (
    JSON.parse(readFileSync(join(folder, 'publish-plan.json'), 'utf8'))
  );
  return plan.flat().flatMap(({ name, version, tarball }) => {
    if (tarball === undefined) return [];
    const file = join(folder, tarball.path);
    const [algorithm = ''] = tarball.integrity.split('-', 1);
    const integrity = `${algorithm}-${createHash(algorithm).update(readFileSync(file)).digest('base64')}`;
    if (integrity !== tarball.integrity)
      throw new Error(`${file} is not what was packed: ${integrity} instead of ${tarball.integrity}`);
    return [{ name: `${name}@${version}`, file }];
  });
}

/** @param {string[]} args */
function main([folder = '.release', ...more]) {
  const tarballs = tarballsOf(folder);
  if (tarballs.length === 0) throw new Error(`nothing is packed in ${folder}`);
  for (const { name, file } of tarballs) {
    console.log(`staging ${name}`);
    const { status } = spawnSync('npm', ['stage', 'publish', file, '--access=public', ...more], {
      stdio: 'inherit',
    });
    if (status !== 0)
      throw new Error(`${name} could not be staged: those before it are, see \`npm stage list\``);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
