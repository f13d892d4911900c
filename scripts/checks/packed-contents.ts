import { statSync } from 'node:fs';
import { posix } from 'node:path';
import { runCommand } from './command.ts';
import type { PackedPackage } from './packed.ts';

/** The limit is that of core, with the suite and both formats; the other packages are far below. */
const MOST = { packedBytes: 330_000, unpackedBytes: 1_500_000, files: 150 };

/** A problem of a tarball as its user sees it; `undefined` if there is none. */
export async function problemOfContents({ tarball, manifest }: PackedPackage): Promise<string | undefined> {
  const listing = (await runCommand('tar', ['-tzvf', tarball])).stdout.trim().split('\n');
  const files = new Set(listing.map((line) => line.slice(line.indexOf('package/') + 'package/'.length)));
  const unpacked = (await runCommand('bash', ['-c', `gzip -dc ${tarball} | wc -c`])).stdout;
  const readme = (await runCommand('tar', ['-xOzf', tarball, 'package/README.md'])).stdout;
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target = '']) =>
    posix.normalize(target),
  );
  const problems = [
    ...links
      .filter((link) => !files.has(link))
      .map((link) => `README.md links to ${link}, which is not packed`),
    ...over('bytes packed', statSync(tarball).size, MOST.packedBytes),
    ...over('bytes unpacked', Number(unpacked), MOST.unpackedBytes),
    ...over('files', files.size, MOST.files),
    ...(manifest.description ? [] : ['no description']),
    ...(manifest.keywords?.length ? [] : ['no keywords']),
  ];
  return problems.length > 0 ? problems.join('\n') : undefined;
}

function over(what: string, is: number, most: number): string[] {
  return is > most ? [`${is} ${what}, more than ${most}`] : [];
}
